package console_test

import (
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/store"
)

// The page of a record and the guard give the same answer.
func TestPageSaysWhatTheClientGets(t *testing.T) {
	inTimeWith(t, func(c *protocol.Config) { c.Retention, c.Horizon = time.Hour, time.Hour }, func(b *bench) {
		request := func() protocol.Admission {
			return b.guard.Admit(b.Context(), protocol.Request{Method: http.MethodPost, Path: "/pay", Header: http.Header{"Idempotency-Key": {"k"}}},
				func() (string, error) { return "tenant", nil })
		}
		first := request()
		if first.Exchange == nil {
			b.Fatalf("admitted as %+v", first)
		}
		b.want("running", b.get(recordPage(store.DeriveID("tenant", "", "k"))), 200, "409 in-progress")
		first.Exchange.Finish(protocol.Captured{Status: 201, Body: []byte("paid")})
		for _, want := range []string{"201, marked Idempotent-Replayed: true, with a body of 4 bytes", "409 result-expired, until the record ends"} {
			b.want("page", b.get(recordPage(store.DeriveID("tenant", "", "k"))), 200, want)
			got := request()
			if status := strconv.Itoa(got.Response.Status); got.Exchange != nil || !strings.HasPrefix(want, status) {
				b.Errorf("the page says %q, the client gets %s", want, status)
			}
			time.Sleep(time.Hour + time.Minute) //nolint:forbidigo // the clock of the bubble
		}
	})
}
