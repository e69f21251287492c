package stacks_test

import (
	"bytes"
	"log"
	"net/http"
	"testing"

	"github.com/go-chi/chi/v5/middleware"

	reprisehttp "github.com/reprise-go/reprise/adapters/nethttp"
	"github.com/reprise-go/reprise/lab/internal/labtest"
)

func TestPanicsAreInTheAccessLog(t *testing.T) {
	t.Parallel()
	guard := labtest.Guard(t)
	var lines bytes.Buffer
	handler := reprisehttp.Middleware(guard, reprisehttp.Unscoped)(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		panic(labtest.PanicValue)
	}))
	handler = middleware.Recoverer(handler)
	handler = middleware.RequestLogger(&middleware.DefaultLogFormatter{Logger: log.New(&lines, "", 0), NoColor: true})(handler)
	labtest.AccessLogOfPanic(t, &lines, labtest.Recorded(handler))
}
