package proxy_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/store"
)

// forgetful is a store that cannot complete a record.
type forgetful struct{ store.Store }

func (forgetful) Complete(context.Context, store.CompleteRequest) error {
	return errors.New("the store is away")
}

// Once a response has left, no field can say that it is not recorded.
func TestChunkedResponseSaysThatItIsNotRecorded(t *testing.T) {
	t.Parallel()
	for _, scheme := range []string{"http", "h2c"} {
		b := setupOver(t, forgetful{memstore.New()}, reprise.Config{CompleteTimeout: 10 * time.Millisecond}, strings.ReplaceAll(plain, "http:", scheme+":"))
		b.handle(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Trailer", "X-Sum")
			w.WriteHeader(http.StatusCreated)
			_, _ = w.Write(allBytes())
			_ = http.NewResponseController(w).Flush()
			w.Header().Set("X-Sum", "256")
		})
		got := b.post("/orders", "k1")
		if got.status != http.StatusCreated || len(got.body) != 256 || got.header.Get("Idempotency-Status") != "unrecorded" {
			t.Errorf("%s: %d %v, want 201 with the mark of an unrecorded response", scheme, got.status, got.header)
		}
		if sum := got.trailer.Get("X-Sum"); sum != "256" {
			t.Errorf("%s: the trailer has the sum %q", scheme, sum)
		}
	}
}

func TestEventStreamsOfRequestsWithAKeyPassAsTheyCome(t *testing.T) {
	t.Parallel()
	b := setup(t, plain)
	read := make(chan struct{})
	b.handle(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		_, _ = io.WriteString(w, "data: 1\n\n")
		_ = http.NewResponseController(w).Flush()
		select {
		case <-read:
		case <-r.Context().Done():
		}
	})
	resp, err := http.ReadResponse(bufio.NewReader(b.dial("POST /live HTTP/1.1\r\n"+keyed+"Content-Length: 0\r\n\r\n")), nil)
	must(t, err)
	defer resp.Body.Close()
	event := make([]byte, 9)
	if _, err := io.ReadFull(resp.Body, event); err != nil || string(event) != "data: 1\n\n" {
		t.Errorf("got %q, %v", event, err)
	}
	close(read)
}
