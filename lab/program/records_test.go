package program

import (
	"context"
	"crypto/sha256"
	"testing"
	"time"

	"github.com/reprise-go/reprise/core/operate"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"
)

// The key of the completed record, and the other parts of its ID.
const (
	knownScope = "tenant-17"
	knownKey   = "8e03978e-40d5-43dd-bc93-6894a57f9324"
	sharedKey  = "shared-by-all-clients"
)

// seed writes a record of each kind, and returns their IDs by the names that the scripts
// know them by.
func (f *fixture) seed(tb testing.TB) map[string]store.ID {
	tb.Helper()
	ids := map[string]store.ID{
		"COMPLETED": store.DeriveID(knownScope, "", knownKey),
		"ENDPOINT":  store.DeriveID(knownScope, "refunds", knownKey),
		"SHARED":    store.DeriveID("\x00unscoped", "", sharedKey),
		"ALIKE":     {0xde, 0xad, 0xbe, 0xef, 1},
		"ALIKE2":    {0xde, 0xad, 0xbe, 0xef, 2},
	}
	for _, name := range []string{"RUNNING", "LAPSED", "LAPSED2", "LAPSED3", "UNKNOWN", "DESCRIBED", "UNREADABLE", "HOSTILE", "HUGE", "FAILED", "DAMAGED"} {
		ids[name] = store.DeriveID("tests", tb.Name(), name)
	}
	f.claim(tb, ids["RUNNING"], "payments", time.Hour)
	f.lapse(tb, ids["LAPSED"], "refunds")
	f.lapse(tb, ids["LAPSED3"], "retries")
	once := claimRequest(ids["LAPSED2"], "refunds", time.Millisecond)
	once.AtMostOnce = true
	f.claims(tb, once)
	f.awaitState(tb, once.ID, store.StateLapsed)
	unknown := f.claim(tb, ids["UNKNOWN"], "bank", time.Hour)
	labtest.Must(tb, f.store.Unknown(tb.Context(), store.UnknownRequest{ID: unknown.ID, Owner: unknown.Owner, Reason: "the bank timed out"}))
	described := claimRequest(ids["DESCRIBED"], "described", time.Hour)
	described.Description = `POST /orders?tenant=acme of "a long-winded client, trace 4bf92f"`
	f.claims(tb, described)
	probe := claimRequest(store.DeriveID("tests", tb.Name(), "probe"), store.ProbeLabel, time.Millisecond)
	probe.AtMostOnce = true
	f.claims(tb, probe)
	f.complete(tb, ids["COMPLETED"], "payments", protocol.Response{
		Status: 201, Body: []byte(`{"receipt":"r-8812"}`),
		Header: protocol.NewHeader(protocol.Field{Name: "Content-Type", Value: "application/json"}, protocol.Field{Name: "Location", Value: "/receipts/8812"}),
	})
	for _, name := range []string{"SHARED", "ENDPOINT", "ALIKE", "ALIKE2"} {
		f.complete(tb, ids[name], "", protocol.Response{Status: 204})
	}
	f.complete(tb, ids["FAILED"], "payouts", protocol.Response{Status: 503})
	f.complete(tb, ids["HOSTILE"], "hostile", hostile())
	f.complete(tb, ids["HUGE"], "huge", protocol.Response{Status: 200, Body: make([]byte, 1<<20)})
	f.keep(tb, ids["DAMAGED"], "payments", []byte("no answer of any release"))
	f.claim(tb, ids["UNREADABLE"], "", time.Hour)
	f.ruin(tb, ids["UNREADABLE"])
	return ids
}

// hostile is a response that would take over the terminal of an operator.
func hostile() protocol.Response {
	return protocol.Response{
		Status: 200,
		Header: protocol.NewHeader(
			protocol.Field{Name: "Content-Type", Value: "text/plain"},
			protocol.Field{Name: "X-Csi", Value: "a\x9b2Jb\u009b31mc"},
			protocol.Field{Name: "X-Bidi", Value: "invoice\u202egpj.exe\u2066"},
		),
		Body: []byte("\x1b]0;owned\x07\x1b[2J\x1b[1;1HApproved\r\n\x1b]52;c;cm0gLXJmIC8=\x07\u009b31m\xff\xfe\u202eevil\u2069\x00end"),
	}
}

// fingerprint is that of every claim here.
func fingerprint() store.Fingerprint { return sha256.Sum256([]byte("request")) }

func claimRequest(id store.ID, label string, lease time.Duration) store.ClaimRequest {
	return store.ClaimRequest{
		ID: id, Owner: store.NewOwner(), Fingerprint: fingerprint(), Lease: lease,
		Policy: store.Policy{Label: label, Retention: 24 * time.Hour, Horizon: 90 * 24 * time.Hour},
	}
}

// claims makes a claim, which has to be granted.
func (f *fixture) claims(tb testing.TB, r store.ClaimRequest) {
	tb.Helper()
	result, err := f.store.Claim(tb.Context(), r)
	if err != nil || result.Outcome != store.Claimed {
		tb.Fatalf("claim of %s: %v, %v", r.ID.Short(), result.Outcome, err)
	}
}

// claim claims an ID.
func (f *fixture) claim(tb testing.TB, id store.ID, label string, lease time.Duration) store.ClaimRequest {
	tb.Helper()
	r := claimRequest(id, label, lease)
	f.claims(tb, r)
	return r
}

// lapse claims an ID with a lease that has run out when it returns.
func (f *fixture) lapse(tb testing.TB, id store.ID, label string) store.ClaimRequest {
	tb.Helper()
	r := f.claim(tb, id, label, time.Millisecond)
	f.awaitState(tb, id, store.StateLapsed)
	return r
}

// awaitState waits until a record is in a state.
func (f *fixture) awaitState(tb testing.TB, id store.ID, want store.RecordState) {
	tb.Helper()
	labtest.Eventually(tb, id.Short()+" is "+want.String(), func() bool { return f.inspect(tb, id).State == want })
}

// complete claims an ID and completes it with a response.
func (f *fixture) complete(tb testing.TB, id store.ID, label string, response protocol.Response) {
	tb.Helper()
	payload, err := operate.Encode(response)
	labtest.Must(tb, err)
	f.keep(tb, id, label, payload)
}

// keep claims an ID and completes it with a payload.
func (f *fixture) keep(tb testing.TB, id store.ID, label string, payload []byte) {
	tb.Helper()
	f.finish(tb, f.claim(tb, id, label, time.Hour), payload)
}

func (f *fixture) finish(tb testing.TB, c store.ClaimRequest, payload []byte) {
	tb.Helper()
	labtest.Must(tb, f.store.Complete(tb.Context(), store.CompleteRequest{
		ID: c.ID, Owner: c.Owner, Payload: payload, Policy: store.Policy{Retention: 24 * time.Hour, Label: c.Label}, Fingerprint: c.Fingerprint,
	}))
}

// inspect reads a record.
func (f *fixture) inspect(tb testing.TB, id store.ID) store.Record {
	tb.Helper()
	inspector, ok := store.As[store.Inspector](f.store)
	if !ok {
		tb.Fatal("the store has no inspector")
	}
	r, err := inspector.Inspect(context.WithoutCancel(tb.Context()), id)
	labtest.Must(tb, err)
	return r
}

// replay returns the result of a client's retry for an ID.
func (f *fixture) replay(tb testing.TB, id store.ID) (store.Outcome, protocol.Response) {
	tb.Helper()
	result, err := f.store.Claim(context.WithoutCancel(tb.Context()), claimRequest(id, "", time.Hour))
	labtest.Must(tb, err)
	if result.Outcome != store.Completed {
		return result.Outcome, protocol.Response{}
	}
	response, err := operate.Decode(result.Payload)
	labtest.Must(tb, err)
	return result.Outcome, response
}
