package reprisehttp

import (
	"net/http"
	"runtime"
	"strings"
)

// A framework whose handlers are not http.Handlers can adapt a middleware of net/http,
// but hides from it what its own handlers answer: the middleware sees a handler that
// writes nothing, and would keep an empty 200 for the retries. As far as that can be
// detected it panics, with the name of the adapter that sees the response.

// frameworks lists those that have a function which adapts a middleware of net/http.
var frameworks = []struct{ path, adapts, serves, hides, adapter string }{
	{"github.com/labstack/echo/v5", "WrapMiddleware", "WrapHandler", "the error that a handler returns", "repriseecho5"},
	{"github.com/labstack/echo/", "WrapMiddleware", "WrapHandler", "the error that a handler returns", "repriseecho"},
	{"github.com/gofiber/fiber/", "HTTPMiddleware", "HTTPHandler", "the response, which follows after the middleware returned", "reprisefiber"},
	{"github.com/gofiber/adaptor/", "HTTPMiddleware", "HTTPHandler", "the response, which follows after the middleware returned", "reprisefiber"},
}

// checkCallers panics if a framework that hides the response makes the chain of handlers,
// which it does anew for each request.
func checkCallers() {
	var pcs [16]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs[:])])
	for {
		frame, more := frames.Next()
		switch misuse, serves := judge(frame.Function, frame.File); {
		case misuse != "":
			panic("reprisehttp: " + misuse)
		case serves, !more:
			return
		}
	}
}

// judge says what is wrong if the function on the stack is one that adapts a middleware,
// and whether it is one that serves an http.Handler, which may well be protected. A
// function that the compiler inlined has its caller's package in its name, but its file
// is still the framework's.
func judge(function, file string) (misuse string, serves bool) {
	for _, f := range frameworks {
		switch {
		case !strings.Contains(function, f.path) && !strings.Contains(file, f.path):
		case strings.Contains(function, f.adapts):
			return f.adapts + " of " + strings.TrimSuffix(f.path, "/") + " hides " + f.hides + ": use the middleware of package " + f.adapter, false
		case strings.Contains(function, f.serves):
			return "", true
		}
	}
	return "", false
}

// ginWriter is what Gin's writer has beside the methods of net/http.
type ginWriter interface {
	Status() int
	Written() bool
	WriteHeaderNow()
}

// ginState is what Gin's writer said of the response before the handler ran.
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

// check panics if the handler answered through Gin's writer and not through rec, as those
// do whose layer leaves it in the context of Gin.
func (g ginState) check(rec *writer) {
	if g.w == nil || rec.hijacked || rec.Status() != 0 {
		return
	}
	status := g.w.Status()
	if g.w.Written() != g.written || status != g.status && status >= http.StatusOK {
		panic("reprisehttp: the handler wrote its response to the writer of Gin and not to that of the middleware: use the middleware of package reprisegin")
	}
}
