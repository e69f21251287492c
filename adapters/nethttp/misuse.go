package reprisehttp

import (
	"net/http"
	"runtime"
	"slices"
	"strings"

	"github.com/reprise-go/reprise/adapters/internal/stdhttp"
)

// A framework whose handlers are not http.Handlers can adapt a middleware of net/http,
// but hides its own handlers' responses from it: the middleware sees a handler that
// writes no response, and would keep an empty 200 for the retries. As far as that can be
// detected it panics, with the name of the adapter that sees the response.

// frameworks lists the frameworks with a function that adapts a middleware of net/http.
var frameworks = []struct {
	path, adapts, hides, adapter string

	runs []string // functions below which an http.Handler may well be protected
}{
	{"github.com/labstack/echo/v5", "WrapMiddleware", "the error that a handler returns", "repriseecho5", []string{"WrapHandler"}},
	{"github.com/labstack/echo/", "WrapMiddleware", "the error that a handler returns", "repriseecho", []string{"WrapHandler"}},
	{"github.com/gofiber/fiber/v3", "HTTPMiddleware", "the response, which follows after the middleware returned", "reprisefiber3", []string{"HTTPHandler", ").Next"}},
	{"github.com/gofiber/fiber/", "HTTPMiddleware", "the response, which follows after the middleware returned", "reprisefiber", []string{"HTTPHandler", ").Next"}},
	{"github.com/gofiber/adaptor/", "HTTPMiddleware", "the response, which follows after the middleware returned", "reprisefiber", []string{"HTTPHandler"}},
}

// checkCallers panics if a framework that hides the response makes the chain of handlers,
// which it does anew for each request. A layer that does so to protect its own handler
// looks the same, and is refused too, unless it makes its chain once, before there are
// requests.
func checkCallers() {
	var pcs [64]uintptr
	if misuse := misuseIn(runtime.CallersFrames(pcs[:runtime.Callers(3, pcs[:])]).Next); misuse != "" {
		panic("reprisehttp: " + misuse + "; protect another handler once, before there are requests")
	}
}

// misuseIn describes the misuse if the function that adapts a middleware is on the stack,
// and called the middleware. It is on the stack too if it adapted another middleware, and
// the handler inside that one makes another chain: Echo runs its handlers in an
// http.Handler then, a function inside of the one that adapts, and Fiber in Next. next
// returns the frames from the inside out.
func misuseIn(next func() (frame runtime.Frame, more bool)) string {
	var misuse, adapts, called string
	for {
		frame, more := next()
		hides, serves := judge(frame.Function, frame.File)
		switch {
		case misuse == "" && serves:
			return ""
		case misuse == "":
			misuse, adapts = hides, frame.Function
		case called == "" && frame.Function == "net/http.HandlerFunc.ServeHTTP", hides != "" && strings.HasPrefix(adapts, frame.Function+"."):
			return "" // it is the handler that the framework gave to another middleware
		default:
			called = frame.Function
		}
		if !more {
			return misuse
		}
	}
}

// judge describes the misuse if the function adapts a middleware, and reports whether it
// runs a handler, which may well be protected. A function that the compiler inlined has
// its caller's package in its name, but its file is still the framework's.
func judge(function, file string) (misuse string, serves bool) {
	for _, f := range frameworks {
		switch {
		case !strings.Contains(function, f.path) && !strings.Contains(file, f.path):
		case strings.Contains(function, f.adapts):
			return f.adapts + " of " + strings.TrimSuffix(f.path, "/") + " hides " + f.hides + ": use the middleware of package " + f.adapter, false
		case slices.ContainsFunc(f.runs, func(run string) bool { return strings.Contains(function, run) }):
			return "", true
		}
	}
	return "", false
}

// ginWriter has the methods that Gin's writer adds to those of net/http.
type ginWriter interface {
	Status() int
	Written() bool
	WriteHeaderNow()
}

// ginState is the state of Gin's writer before the handler ran.
type ginState struct {
	w       ginWriter // nil: there is no Gin
	status  int
	written bool
}

// ginStateOf looks for Gin's writer in w and behind it.
func ginStateOf(w http.ResponseWriter) ginState {
	for {
		switch v := w.(type) {
		case ginWriter:
			return ginState{v, v.Status(), v.Written()}
		case interface{ Unwrap() http.ResponseWriter }:
			w = v.Unwrap()
		default:
			return ginState{}
		}
	}
}

// check panics if the handler answered through Gin's writer and not through rec, as it
// does under a layer that leaves Gin's writer in the context of Gin.
func (g ginState) check(rec *stdhttp.Writer) {
	if g.w == nil || rec.Hijacked || rec.Status() != 0 {
		return
	}
	status := g.w.Status()
	if g.w.Written() != g.written || status != g.status && status >= http.StatusOK {
		panic("reprisehttp: the handler wrote its response to the writer of Gin and not to that of the middleware: use the middleware of package reprisegin")
	}
}
