package protocol_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/protocol/stored"
	"github.com/reprise-go/reprise/core/store"
)

// A result of Do is no response, and a response no result of Do: each takes a record of
// the other for corrupt, and does not run.
func TestResultsOfDoAndResponsesAreDistinct(t *testing.T) {
	t.Parallel()
	result := must(reprise.EncodeResult(nil, map[string]int{"status": 200}, nil))
	if _, err := stored.Decode(result); !errors.Is(err, store.ErrCorrupt) {
		t.Errorf("a result is read as a response: %v", err)
	}
	response := must(stored.Encode(protocol.Response{Status: 200, Body: []byte("{}")}))
	if _, err := reprise.DecodeResult[any](nil, response); !errors.Is(err, store.ErrCorrupt) || reprise.DescribeResult(response) != "" {
		t.Errorf("a response is read as a result: %v", err)
	}

	engine := must(reprise.New(memstore.New(), reprise.Config{Log: slog.New(slog.DiscardHandler)}))
	defer engine.Close(context.WithoutCancel(t.Context()))
	guard := must(protocol.Over(engine, protocol.Config{Fingerprint: protocol.Fingerprinting{Func: func(*protocol.Request, string, []byte) (store.Fingerprint, error) {
		return store.Fingerprint{}, nil
	}}}))
	admit := func(key string) protocol.Admission {
		return guard.Admit(t.Context(), protocol.Request{
			Method: "POST", Path: "/", Header: http.Header{"Idempotency-Key": {key}}, Body: strings.NewReader(""),
		}, func() (string, error) { return "tenant", nil })
	}
	do := func(key string) error {
		_, err := reprise.Do(t.Context(), engine, reprise.Operation{Scope: "tenant", Key: key}, nil, func(context.Context) (int, error) { return 1, nil })
		return err
	}
	if err := do("do"); err != nil {
		t.Fatal(err)
	}
	if a := admit("do"); a.Exchange != nil || a.Response.Status != 500 || !strings.Contains(string(a.Response.Body), "record-corrupt") {
		t.Errorf("a guard over a record of Do answers %d %s", a.Response.Status, a.Response.Body)
	}
	x := admit("guard").Exchange
	x.Finish(protocol.Captured{Status: 201})
	x.Close()
	if err := do("guard"); !errors.Is(err, store.ErrCorrupt) {
		t.Errorf("Do over a record of a guard: %v", err)
	}
	if n := engine.Stats().Outcomes[reprise.Corrupt]; n != 2 {
		t.Errorf("%d corrupt records are counted, want 2", n)
	}
}
