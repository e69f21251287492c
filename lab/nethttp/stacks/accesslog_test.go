package stacks_test

import (
	"bytes"
	"fmt"
	"net/http"
	"testing"

	"github.com/go-chi/chi/v5/middleware"

	reprisehttp "github.com/reprise-go/reprise/adapters/nethttp"
	"github.com/reprise-go/reprise/lab/frameworks/stack"
)

// printed is a logger of chi that keeps its lines.
type printed struct{ bytes.Buffer }

func (p *printed) Print(v ...any) { fmt.Fprintln(p, v...) }

func TestPanicsAreInTheAccessLog(t *testing.T) {
	t.Parallel()
	guard := stack.Guard(t)
	var lines printed
	handler := reprisehttp.Middleware(guard, reprisehttp.Unscoped)(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		panic(stack.PanicValue)
	}))
	handler = middleware.Recoverer(handler)
	handler = middleware.RequestLogger(&middleware.DefaultLogFormatter{Logger: &lines, NoColor: true})(handler)
	stack.AccessLogOfPanic(t, &lines.Buffer, stack.Recorded(handler))
}
