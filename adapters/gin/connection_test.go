package reprisegin

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gin-gonic/gin"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/protocol"
)

// talk writes to a connection of its own and returns the lines that come back until it is closed.
func (b *bench) talk(text string) string {
	b.t.Helper()
	conn, err := new(net.Dialer).DialContext(b.t.Context(), "tcp", strings.TrimPrefix(b.serve(), "http://"))
	if err != nil {
		b.t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patience))
	if _, err := io.WriteString(conn, text); err != nil {
		b.t.Fatal(err)
	}
	got, err := io.ReadAll(conn)
	if err != nil {
		b.t.Fatalf("after %q: %v", got, err)
	}
	return string(got)
}

// A websocket begins with GET, which is not keyed: its connection is Gin's.
func TestUpgradesPassUntouched(t *testing.T) {
	t.Parallel()
	b := setup(t, protocol.Config{Required: true})
	b.GET("/socket", b.guarded, func(c *gin.Context) {
		c.Writer.WriteHeader(http.StatusSwitchingProtocols)
		conn, rw, err := c.Writer.Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		line, _ := rw.ReadString('\n')
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\n\r\n"+line)
	})
	got := b.talk("GET /socket HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nIdempotency-Key: k\r\n\r\nping\n")
	if got != "HTTP/1.1 101 Switching Protocols\r\n\r\nping\n" {
		t.Errorf("got %q", got)
	}
}

func TestR34HijackedConnectionIsNotKept(t *testing.T) {
	t.Parallel()
	// A header that was written, and even sent, does not keep a handler from taking the connection.
	for path, before := range map[string]func(gin.ResponseWriter){
		"/at-once": func(gin.ResponseWriter) {},
		"/written": func(w gin.ResponseWriter) { w.WriteHeaderNow() },
		"/flushed": func(w gin.ResponseWriter) { w.Flush() },
	} {
		for preset, runs := range map[reprise.Preset]int64{reprise.Recoverable: 2, reprise.AtMostOnce: 1} {
			b := setup(t, protocol.Config{Preset: preset})
			b.POST(path, b.guarded, b.counted(func(c *gin.Context) {
				before(c.Writer)
				conn, _, err := c.Writer.Hijack()
				if err != nil {
					t.Error(err)
					return
				}
				defer conn.Close()
				_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\nraw")
			}))
			request := "POST " + path + " HTTP/1.1\r\nHost: h\r\nIdempotency-Key: k\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
			if got := b.talk(request); !strings.HasSuffix(got, "\r\n\r\nraw") {
				t.Errorf("%s, %v: got %q", path, preset, got)
			}
			var again string
			eventually(t, func() bool { // the handler ends after its connection
				again = b.talk(request)
				return !strings.Contains(again, "in-progress")
			})
			if want := map[int64]string{2: "raw", 1: "result-unavailable"}[runs]; !strings.Contains(again, want) {
				t.Errorf("%s, %v: the retry got %q", path, preset, again)
			}
			b.ran(runs)
		}
	}
}

func TestHijackAfterTheBodyFails(t *testing.T) {
	t.Parallel()
	b := setup(t, protocol.Config{})
	b.POST("/late", b.guarded, func(c *gin.Context) {
		c.String(http.StatusOK, "body")
		if _, _, err := c.Writer.Hijack(); !errors.Is(err, errWritten) {
			t.Errorf("error %v", err)
		}
	})
	if first, _ := b.twice("POST", "/late"); first.body != "body" {
		t.Errorf("%+v", first)
	}
}

// R17: Gin's own writer takes 103 as the final status; behind the middleware it goes out at once, and past layers that can be passed.
func TestR17InformationalAnswers(t *testing.T) {
	t.Parallel()
	b := setup(t, protocol.Config{})
	other := b.middleware(protocol.Config{Endpoint: "other"})
	hints := func(c *gin.Context) {
		c.Writer.WriteHeader(http.StatusEarlyHints)
		created(c)
	}
	b.POST("/plain", b.guarded, hints)
	b.POST("/nested", other, b.guarded, hints)
	b.POST("/hidden", func(c *gin.Context) {
		c.Writer = struct{ gin.ResponseWriter }{c.Writer}
	}, b.guarded, hints)
	for path, want := range map[string]int{"/plain": 1, "/nested": 1, "/hidden": 0} {
		hinted := 0
		trace := &httptrace.ClientTrace{Got1xxResponse: func(code int, _ textproto.MIMEHeader) error {
			if code == http.StatusEarlyHints {
				hinted++
			}
			return nil
		}}
		r := b.request("POST", path, "", "Idempotency-Key", path)
		a, err := b.try(r.WithContext(httptrace.WithClientTrace(r.Context(), trace)))
		if err != nil || a.status != http.StatusCreated || a.body != createdBody || hinted != want {
			t.Errorf("%s: %d informational answers, want %d, then %+v, %v", path, hinted, want, a, err)
		}
		if again, err := b.try(b.request("POST", path, "", "Idempotency-Key", path)); err != nil || !again.replayed() || again.status != http.StatusCreated {
			t.Errorf("%s: replayed %+v, %v", path, again, err)
		}
	}
}

// R23: neither the context of a handler nor CloseNotify, on which c.Stream relies, tells of a client that left. A stream that ended with its
// client would be replayed as if it were complete.
func TestR23StreamOutlivesItsClient(t *testing.T) {
	t.Parallel()
	b := setup(t, protocol.Config{})
	gone := make(chan struct{})
	leaves := sync.OnceFunc(func() { close(gone) })
	b.POST("/stream", func(c *gin.Context) { context.AfterFunc(c.Request.Context(), leaves) }, b.guarded, b.counted(func(c *gin.Context) {
		rest := []string{"one ", "two ", "three"}
		ended := c.Stream(func(w io.Writer) bool {
			_, _ = io.WriteString(w, rest[0])
			rest = rest[1:]
			if len(rest) == 2 {
				c.Writer.Flush()
				<-gone
			}
			return len(rest) > 0
		})
		if ended || c.Request.Context().Err() != nil {
			t.Errorf("the stream ended with its client: %v, %v", ended, c.Request.Context().Err())
		}
	}))
	ctx, leave := context.WithCancel(t.Context())
	res, err := client.Do(b.request("POST", "/stream", "", "Idempotency-Key", "k").WithContext(ctx))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := bufio.NewReader(res.Body).ReadString(' '); err != nil {
		t.Fatal(err)
	}
	leave()
	_ = res.Body.Close()
	eventually(t, func() bool {
		again, err := b.try(b.request("POST", "/stream", "", "Idempotency-Key", "k"))
		if err != nil || !again.replayed() && again.status != http.StatusConflict {
			t.Fatalf("the retry got %+v, %v", again, err)
		}
		return again.replayed() && again.body == "one two three"
	})
	b.ran(1)
}
