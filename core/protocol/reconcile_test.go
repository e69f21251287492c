package protocol_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/store"
)

// A payment whose bank did not answer is resolved by what the bank says afterwards, by
// the key that the handler passed it.
func TestReconcileResolvesByTheAnswer(t *testing.T) {
	t.Parallel()
	receipt := &protocol.Response{Status: 201, Header: protocol.NewHeader(protocol.Field{Name: "Content-Type", Value: "text/plain"}), Body: []byte("receipt 8812")}
	errBank, secret := errors.New("the bank is away"), must(protocol.NewSecret("a", make([]byte, 32)))
	for name, c := range map[string]struct {
		seal     protocol.Sealing
		response *protocol.Response
		known    bool
		err      error
		counts   reprise.Reconciled
		want     error
	}{
		"executed":               {response: receipt, known: true, counts: reprise.Reconciled{Executed: 1}},
		"not executed":           {known: true, counts: reprise.Reconciled{NotExecuted: 1}},
		"not known yet":          {counts: reprise.Reconciled{NotKnown: 1}},
		"an error":               {known: true, err: errBank, counts: reprise.Reconciled{Failed: 1}, want: errBank},
		"a response of no kind":  {response: &protocol.Response{Status: 99}, known: true, counts: reprise.Reconciled{Failed: 1}, want: store.ErrInvalid},
		"a stream":               {response: &protocol.Response{Status: 200, Stream: io.NopCloser(strings.NewReader(""))}, known: true, counts: reprise.Reconciled{Failed: 1}, want: store.ErrInvalid},
		"of a sealing policy":    {seal: protocol.Sealing{Secret: secret}, response: receipt, known: true, counts: reprise.Reconciled{Executed: 1}},
		"of a strict one":        {seal: protocol.Sealing{Secret: secret, Strict: true}, response: receipt, known: true, counts: reprise.Reconciled{Failed: 1}, want: store.ErrCorrupt},
		"of a strict, forgotten": {seal: protocol.Sealing{Secret: secret, Strict: true}, known: true, counts: reprise.Reconciled{NotExecuted: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := setup(t, protocol.Config{Label: "payments", Preset: reprise.AtMostOnce, Seal: c.seal})
				x := b.admit("k", "body").Exchange
				attempt, _ := reprise.AttemptFrom(x.Context())
				passed := must(attempt.Key("charge"))
				protocol.Unknown(x.Context(), "no answer from the bank")
				finish(x, 504)
				time.Sleep(time.Minute)
				got, err := b.guard.Reconcile(t.Context(), time.Minute, func(_ context.Context, r reprise.Record) (*protocol.Response, bool, error) {
					if r.Key("charge") != passed || r.Reason != "no answer from the bank" {
						t.Errorf("asked about %+v", r)
					}
					return c.response, c.known, c.err
				})
				if got != c.counts || !errors.Is(err, c.want) {
					t.Errorf("%+v, %v; want %+v, %v", got, err, c.counts, c.want)
				}
				switch retry := b.admit("k", "body"); {
				case c.counts.Executed == 1:
					if got := b.replay("k"); got.Code != 201 || got.Body.String() != "receipt 8812" || got.Header().Get("Content-Type") != "text/plain" {
						t.Errorf("the retry gets %d %s", got.Code, got.Body)
					}
				case c.counts.NotExecuted == 1:
					wantRun(t, retry)
					finish(retry.Exchange, 201)
				case admissionCode(t, retry) != protocol.CodeOutcomeUnknown:
					t.Errorf("the retry gets %q", admissionCode(t, retry))
				}
			})
		})
	}
	if _, err := setup(t, protocol.Config{Label: "payments"}).guard.Reconcile(t.Context(), time.Minute, nil); !errors.Is(err, store.ErrInvalid) {
		t.Errorf("without a function: %v", err)
	}
}
