package harness

import (
	"bytes"
	"context"
	"net/http"
	"testing"
	"time"

	reprise "github.com/reprise-go/reprise/core"
)

// Pattern returns n bytes with every kind of value among them.
func Pattern(n int) []byte {
	return bytes.Repeat([]byte("0123456789abcdef\x00\xff\r\n"), n/20+1)[:n]
}

// Panics fails the test unless each of the calls panics.
func Panics(t *testing.T, calls ...func()) {
	t.Helper()
	for i, call := range calls {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("call %d does not panic", i)
				}
			}()
			call()
		}()
	}
}

// outerKey is the key of the value that [WithOuter] sets.
type outerKey struct{}

// WithOuter returns r with a value in its context, as a layer outside sets one.
func WithOuter(r *http.Request) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), outerKey{}, "outer"))
}

// CheckContext fails the test unless ctx is that of a handler in its first attempt,
// inside of the layer that called [WithOuter].
func CheckContext(t *testing.T, ctx context.Context) {
	t.Helper()
	if ctx.Value(outerKey{}) != "outer" || ctx.Err() != nil {
		t.Errorf("value %v, error %v", ctx.Value(outerKey{}), ctx.Err())
	}
	if view, ok := reprise.AttemptFrom(ctx); !ok || view.Number() != 1 {
		t.Error("the handler does not know its attempt")
	}
}

// CheckEnded fails the test unless the context and the body of a handler's request end
// with its response.
func CheckEnded(t *testing.T, r *http.Request) {
	t.Helper()
	select {
	case <-r.Context().Done():
	case <-time.After(Patience):
		t.Error("the context of a handler outlives its response")
	}
	if _, err := r.Body.Read(make([]byte, 1)); err == nil {
		t.Error("the body can be read after the response")
	}
}
