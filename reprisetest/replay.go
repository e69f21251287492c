package reprisetest

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/reprise-go/reprise/core/protocol"
)

// Replay sends a request twice to a handler with its middleware, and fails the test
// unless the second response is a replay of the first: the same status, body,
// Content-Type, Content-Encoding and Location. It returns both.
//
// Fields that a layer outside of the middleware sets may differ. The request is not
// changed, and may be sent again.
func Replay(tb testing.TB, h http.Handler, r *http.Request) (first, again *Response) {
	tb.Helper()
	m := read(tb, r)
	first = m.send(tb, h)
	if problem := notFirst(first); problem != "" {
		tb.Errorf("the first request: %s\n\n%v", problem, first)
		return first, m.send(tb, h)
	}
	again = m.send(tb, h)
	wantReplay(tb, first, again)
	return first, again
}

// notFirst says why a response is not one of a handler that ran; empty if it is.
func notFirst(a *Response) string {
	switch {
	case a.Panic != nil:
		return "the handler panicked"
	case a.Replayed():
		return "it was answered with a replay; send a request with a new key, such as one of Post"
	case isRefusal(a):
		return "the middleware refused it"
	default:
		return ""
	}
}

// isRefusal reports whether the middleware made the response, as a problem.
func isRefusal(a *Response) bool {
	return a.Header.Get("Content-Type") == "application/problem+json" && bytes.Contains(a.Body, []byte(`"retryable":`))
}

// wantReplay fails the test unless again is a replay of first.
func wantReplay(tb testing.TB, first, again *Response) {
	tb.Helper()
	if !again.Replayed() {
		tb.Errorf("the retry is not a replay: %s\n\nthe first response:\n%v\n\nthe response to the retry:\n%v", whyNot(first, again), first, again)
		return
	}
	if differences := diff(first, again); differences != "" {
		tb.Errorf("the replay differs from the first response:\n%s", differences)
	}
}

// whyNot says why a retry probably ran.
func whyNot(first, again *Response) string {
	switch {
	case again.Panic != nil:
		return "the handler panicked"
	case isRefusal(again):
		return "the middleware refused it"
	case slices.Contains([]int{401, 407, 425, 429}, first.Status):
		return fmt.Sprintf("a response with status %d is never kept, unless the handler calls protocol.Keep", first.Status)
	case first.Status >= 500, slices.Contains([]int{307, 308, 408, 499}, first.Status):
		return fmt.Sprintf("a response with status %d is not kept with the preset Recoverable", first.Status)
	case first.Header.Get(protocol.FieldStatus) != "":
		return "the first response says that it is " + first.Header.Get(protocol.FieldStatus)
	default:
		return "the handler ran again; the route may be without the middleware, the method not keyed, or the request without a key"
	}
}

// described are the fields without which a body is unusable, and those that every policy
// should replay.
var described = []string{"Content-Type", "Content-Encoding", "Location"}

// diff describes how a replay differs from the first response; empty if it does not.
func diff(first, again *Response) string {
	var b strings.Builder
	if first.Status != again.Status {
		fmt.Fprintf(&b, "- status %d\n+ status %d\n", first.Status, again.Status)
	}
	for _, name := range described {
		was, is := strings.Join(first.Header[name], ", "), strings.Join(again.Header[name], ", ")
		if was != is {
			fmt.Fprintf(&b, "- %s: %s\n+ %s: %s\n", name, was, name, is)
		}
	}
	if !bytes.Equal(first.Body, again.Body) {
		was, is := bytes.Split(first.Body, []byte("\n")), bytes.Split(again.Body, []byte("\n"))
		for i := range max(len(was), len(is)) {
			if before, after := line(was, i), line(is, i); before != after {
				fmt.Fprintf(&b, "- body, line %d: %.200s\n+ body, line %d: %.200s\n", i+1, before, i+1, after)
				break
			}
		}
	}
	return b.String()
}

func line(lines [][]byte, i int) string {
	if i >= len(lines) {
		return "(ended)"
	}
	return string(lines[i])
}

// Race sends a request n times at once to a handler with its middleware. It fails the
// test unless exactly one of them runs and every other one is refused, because that one
// is in progress, or gets its replay. A retry after all of them must be a replay, too.
// Race returns the response of the request that ran.
func Race(tb testing.TB, h http.Handler, n int, r *http.Request) *Response {
	tb.Helper()
	m := read(tb, r)
	responses := make([]*Response, n)
	start := make(chan struct{})
	var all sync.WaitGroup
	for i := range responses {
		all.Go(func() {
			<-start
			responses[i] = m.send(tb, h)
		})
	}
	close(start)
	all.Wait()

	var ran *Response
	runs := 0
	for _, a := range responses {
		switch {
		case a.Replayed(), a.Status == http.StatusConflict && isRefusal(a):
		case notFirst(a) != "":
			tb.Errorf("one of %d simultaneous requests: %s\n\n%v", n, notFirst(a), a)
			return a
		default:
			ran = a
			runs++
		}
	}
	if runs != 1 {
		tb.Errorf("of %d simultaneous requests %d ran, want 1; the route may be without the middleware, or the request without a key", n, runs)
		return responses[0]
	}
	wantReplay(tb, ran, m.send(tb, h))
	return ran
}
