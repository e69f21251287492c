package reprisetest_test

import (
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/reprise-go/reprise/core/protocol"
)

// once is the middleware of these tests; services take that of their framework.
func once(guard *protocol.Guard, next http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		request := protocol.Request{
			Method: r.Method, Path: r.URL.EscapedPath(), RawQuery: r.URL.RawQuery, Host: r.Host, Header: r.Header, Body: r.Body, Length: r.ContentLength,
		}
		admission := guard.Admit(r.Context(), request, func() (string, error) { return "tenant", nil })
		switch {
		case admission.Pass:
			next(w, r)
		case admission.Exchange != nil:
			var rec protocol.Recorder
			rec.Start(admission.Exchange, w.Header(), w, http.DetectContentType)
			defer rec.Close()                                    //nolint:contextcheck // an exchange has its own
			inner := r.WithContext(admission.Exchange.Context()) //nolint:contextcheck // an exchange has its own
			inner.Body = admission.Exchange.Body()
			next(recorder{&rec, w}, inner)
			rec.Finish() //nolint:contextcheck // an exchange has its own
		default:
			admission.Response.Write(w.Header(), w)
		}
	})
}

type recorder struct {
	*protocol.Recorder

	behind http.ResponseWriter
}

func (r recorder) Header() http.Header { return r.behind.Header() }

// orders is a handler and its database.
type orders struct {
	mu   sync.Mutex
	rows int
}

func (o *orders) create(w http.ResponseWriter, r *http.Request) {
	item, _ := io.ReadAll(r.Body)
	o.mu.Lock()
	o.rows++
	n := o.rows
	o.mu.Unlock()
	w.Header().Set("Content-Type", "text/plain")
	w.WriteHeader(http.StatusCreated)
	fmt.Fprintf(w, "order %d: %s\n", n, item)
}

func (o *orders) count() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.rows
}

// judge is a test that may fail.
type judge struct {
	testing.TB

	mu       sync.Mutex
	failures strings.Builder
	cleanups []func()
}

func (j *judge) Helper()          {}
func (j *judge) Cleanup(f func()) { j.cleanups = append(j.cleanups, f) }

func (j *judge) cleanUp() {
	for _, f := range j.cleanups {
		f()
	}
}

// end ends the test of an example, and prints the first line of its failure.
func (j *judge) end() {
	j.cleanUp()
	if text, _, failed := strings.Cut(j.failures.String(), "\n"); failed {
		fmt.Println("FAIL:", text)
	}
}

func (j *judge) Errorf(format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	fmt.Fprintf(&j.failures, format+"\n", args...)
}

func (j *judge) Fatal(args ...any) {
	j.Errorf("%s", fmt.Sprint(args...))
	runtime.Goexit()
}

func (j *judge) Fatalf(format string, args ...any) {
	j.Errorf(format, args...)
	runtime.Goexit()
}

// failure returns the failure that run reports to the test that it is given; empty if
// that test passes.
func failure(tb testing.TB, run func(testing.TB)) string {
	tb.Helper()
	j := &judge{TB: tb}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer j.cleanUp()
		run(j)
	}()
	<-done
	return j.failures.String()
}
