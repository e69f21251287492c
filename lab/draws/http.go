package draws

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// PanicValue is what handlers panic with.
const PanicValue = "panic of a drawn handler"

// ErrPlain is the error that the step "error" returns.
var ErrPlain = errors.New("a drawn error")

// HTTPOps are the steps that [HTTP] executes, which are those of net/http.
var HTTPOps = []string{
	"set", "add", "del", "nil", "status", "inform", "write", "string", "copy", "flush", "length", "announce", "trailer", "prefixed",
	"json", "text", "empty", "redirect", "file", "stream", "panic", "cut", "hijack",
}

// HTTP executes steps with a [http.ResponseWriter], in net/http and for the steps that a
// framework leaves to it.
type HTTP struct {
	W http.ResponseWriter
	R *http.Request
}

// Do executes a step. It reports whether the handler goes on.
func (h HTTP) Do(c *Case, s Step) (goesOn bool) {
	header := h.W.Header()
	switch s.Op {
	case "set":
		header.Set(s.Name, s.Value)
	case "add":
		header.Add(s.Name, s.Value)
	case "del":
		header.Del(s.Name)
	case "nil":
		header[s.Name] = nil
	case "status":
		h.W.WriteHeader(s.N)
	case "inform":
		header.Set("Link", "</style.css>")
		h.W.WriteHeader(http.StatusEarlyHints)
	case "write":
		_, _ = h.W.Write([]byte(s.Body()))
	case "string":
		_, _ = io.WriteString(h.W, s.Body())
	case "copy":
		_, _ = io.Copy(h.W, struct{ io.Reader }{strings.NewReader(s.Body())})
	case "flush":
		_ = http.NewResponseController(h.W).Flush()
	case "length":
		header.Set("Content-Length", strconv.Itoa(max(c.Total()+s.N, 0)))
	case "announce":
		header.Add("Trailer", s.Name)
	case "trailer":
		header.Set(s.Name, s.Value)
	case "prefixed":
		header.Set(http.TrailerPrefix+s.Name, s.Value)
	case "json":
		header.Set("Content-Type", "application/json")
		h.W.WriteHeader(s.N)
		_, _ = io.WriteString(h.W, `{"n":1}`)
	case "text":
		http.Error(h.W, "text", s.N)
	case "empty":
		h.W.WriteHeader(s.N)
	case "redirect":
		http.Redirect(h.W, h.R, "/orders/7", http.StatusSeeOther)
	case "file":
		http.ServeContent(h.W, h.R, "invoice.txt", time.Unix(0, 0), strings.NewReader(s.Body()))
	case "stream":
		for rest := s.Body(); rest != ""; {
			n := min(len(rest), 1000)
			_, _ = io.WriteString(h.W, rest[:n])
			_ = http.NewResponseController(h.W).Flush()
			rest = rest[n:]
		}
	case "panic":
		panic(PanicValue)
	case "cut":
		panic(http.ErrAbortHandler)
	case "hijack":
		conn, rw, err := http.NewResponseController(h.W).Hijack()
		if err != nil {
			return true
		}
		c.hijacked.Store(true)
		_, _ = rw.WriteString("HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\nraw")
		_ = rw.Flush()
		_ = conn.Close()
		return false
	}
	return true
}

// Derive returns the request with another context, in one of the ways in which handlers
// replace it: derived from c, which is the request's own or the framework's, or detached.
// The handler defers end, because a framework's context is another request's afterwards.
func Derive(r *http.Request, c context.Context, op string) (derived *http.Request, end context.CancelFunc) { //nolint:revive // the context is what the step is about
	type key struct{}
	end = func() {}
	switch op {
	case "value":
		return r.WithContext(context.WithValue(c, key{}, 1)), end
	case "deadline":
		c, end = context.WithTimeout(c, time.Minute)
		return r.WithContext(c), end
	case "background":
		return r.WithContext(context.WithValue(context.Background(), key{}, 1)), end //nolint:contextcheck // which is the step
	default:
		made, _ := http.NewRequest(r.Method, r.URL.String(), r.Body) //nolint:noctx,gosec // which is the step
		made.Header = r.Header
		return made, end
	}
}
