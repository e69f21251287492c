package operate_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/internal/record"
	"github.com/reprise-go/reprise/core/internal/teststore"
	"github.com/reprise-go/reprise/core/job"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/operate"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/store"
)

// emptyBlobs has no blob.
type emptyBlobs struct{}

func (emptyBlobs) Put(context.Context, string, *io.SectionReader) error { return nil }
func (emptyBlobs) Open(context.Context, string) (io.ReadCloser, error) {
	return nil, protocol.ErrNoBlob
}

// nextKey is the key of the requests below, and nextRequest is one.
const nextKey = "k"

func nextRequest() protocol.Request {
	return protocol.Request{Method: "POST", Path: "/orders", Header: http.Header{"Idempotency-Key": {nextKey}}, Body: strings.NewReader("body")}
}

// payloadsOf returns one payload of each kind that a record may have.
func payloadsOf(t *testing.T, id store.ID, fp store.Fingerprint) map[string][]byte {
	t.Helper()
	kept := must(operate.Encode(protocol.Response{Status: 201, Body: []byte("paid")}))
	result := must(job.EncodeResult(nil, 8812, nil))
	flagged := func(f record.Flags) []byte {
		return record.Append(nil, &record.Response[record.Field]{Status: 202, Flags: f, Blob: record.Blob{Size: 5_000_000, Day: 20_000}})
	}
	seal := func(by protocol.Sealing, encoded []byte) []byte {
		return must(by.Seal(encoded, nextKey, id, fp))
	}
	return map[string][]byte{
		"whole":                      kept,
		"cut":                        flagged(record.Cut),
		"omitted":                    flagged(record.Omitted),
		"offloaded":                  flagged(record.Offloaded),
		"damaged":                    append(bytes.Clone(kept), 0),
		"empty":                      {},
		"of Do":                      result,
		"of Do, damaged":             result[:len(result)-1],
		"sealed":                     seal(protocol.Sealing{Secret: secret(t, "2026")}, kept),
		"sealed, cut":                seal(protocol.Sealing{Secret: secret(t, "2026"), ClearHead: true}, flagged(record.Cut)),
		"sealed with another secret": seal(protocol.Sealing{Secret: secret(t, "2025")}, kept),
		"sealed, damaged":            seal(protocol.Sealing{Secret: secret(t, "2026")}, kept)[:40],
	}
}

// nextPolicies are the options that change the answer to a retry.
func nextPolicies(t *testing.T) map[string]protocol.Config {
	t.Helper()
	return map[string]protocol.Config{
		"plain":            {},
		"one attempt":      {MaxAttempts: 1},
		"two attempts":     {MaxAttempts: 2},
		"waits":            {Wait: time.Second},
		"unavailable":      {Oversize: protocol.Unavailable},
		"blobs":            {Offload: protocol.Offloading{Blobs: emptyBlobs{}, Dir: t.TempDir()}},
		"sealed":           {Seal: protocol.Sealing{Secret: secret(t, "2026"), MaxAge: 25 * time.Hour}},
		"sealed, strictly": {Seal: protocol.Sealing{Secret: secret(t, "2026"), OtherSecrets: []protocol.Secret{secret(t, "2025")}, Strict: true}},
	}
}

// leave leaves a record in a state, by a claim with a policy and a lease of a minute.
func leave(t *testing.T, st *memstore.Store, claim store.ClaimRequest, state store.RecordState, payload []byte) {
	t.Helper()
	must(st.Claim(t.Context(), claim))
	var err error
	switch state {
	case store.StateLapsed:
		time.Sleep(2 * time.Minute)
	case store.StateUnknown:
		err = st.Unknown(t.Context(), store.UnknownRequest{ID: claim.ID, Owner: claim.Owner, Reason: "timeout"})
	case store.StateCompleted, store.StateExpired:
		err = st.Complete(t.Context(), store.CompleteRequest{ID: claim.ID, Owner: claim.Owner, Policy: claim.Policy, Payload: payload})
		if state == store.StateExpired {
			time.Sleep(claim.Retention)
		}
	case store.StateRunning, store.StateUnreadable:
	}
	if err != nil {
		t.Fatal(err)
	}
}

// realAnswer is the answer of a guard to a request.
type realAnswer struct {
	outcome reprise.Outcome
	status  int
	code    protocol.Code
}

func answerOf(t *testing.T, st store.Store, cfg protocol.Config) (*protocol.Guard, func() realAnswer) {
	t.Helper()
	var counted reprise.Outcome
	cfg.Engine.Observer = reprise.ObserverFunc(func(_ context.Context, e reprise.Event) {
		if e.Counted && e.Outcome != 0 {
			counted = e.Outcome
		}
	})
	guard := must(protocol.New(st, cfg))
	return guard, func() realAnswer {
		a := guard.Admit(t.Context(), nextRequest(), scope)
		var problem struct{ Code protocol.Code }
		if a.Exchange != nil {
			a.Exchange.Finish(protocol.Captured{Status: 503})
			a.Exchange.Close()
		} else {
			_ = json.Unmarshal(a.Response.Body, &problem) // another body has no code
		}
		_ = guard.Close(t.Context())
		return realAnswer{counted, a.Response.Status, problem.Code}
	}
}

// NextOf and a guard give the same answer, for every state, preset, horizon, payload and
// policy. What NextOf cannot know without the policy is among its alternatives.
func TestNextOfIsTheAnswerOfTheGuard(t *testing.T) {
	fp := must(protocol.DefaultFingerprint(ptr(nextRequest()), nextKey, []byte("body")))
	id := store.DeriveID("tenant", "", nextKey)
	payloads := payloadsOf(t, id, fp)
	check := func(t *testing.T, cfg protocol.Config, state store.RecordState, policy store.Policy, kind string, age time.Duration) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			records := memstore.New()
			cfg.Label, policy.Label = "orders", "orders"
			leave(t, records, store.ClaimRequest{ID: id, Owner: store.NewOwner(), Fingerprint: fp, Policy: policy, Lease: time.Minute}, state, payloads[kind])
			time.Sleep(age)
			var st store.Store = records
			rec, err := records.Inspect(t.Context(), id)
			if state == store.StateUnreadable {
				rec = store.Record{ID: id, State: state, Fence: 1}
				st = &teststore.Hooked{Store: records, OnClaim: func(context.Context, store.ClaimRequest) (store.ClaimResult, error) {
					return store.ClaimResult{}, store.ErrCorrupt
				}}
			}
			found := &rec
			if err != nil {
				found = nil
			} else if rec.State != state {
				t.Fatalf("the record is %v", rec.State)
			}
			guard, ask := answerOf(t, st, cfg)
			known, guessed := operate.NextOf(found, guard), operate.NextOf(found)
			answer := ask()
			for what, n := range map[string]operate.Next{"with the policy": known, "without it": guessed} {
				exact := n.Outcome == answer.outcome && n.Code == answer.code && (n.Status == answer.status || n.Status == 0)
				if !exact && !slices.Contains(n.Or, answer.code) || n.Text == "" {
					t.Errorf("%s: the guard answers %+v, and not %+v", what, answer, n)
				}
			}
			unsure := strings.HasPrefix(kind, "sealed") || kind == "offloaded"
			if len(known.Or) > 0 && !unsure {
				t.Errorf("with the policy there is doubt: %+v", known)
			}
		})
	}
	for name, cfg := range nextPolicies(t) {
		for _, horizon := range []time.Duration{0, 30 * 24 * time.Hour} {
			for _, once := range []bool{false, true} {
				policy := store.Policy{AtMostOnce: once, Retention: 24 * time.Hour, Horizon: horizon}
				for state := store.StateRunning; state <= store.StateUnknown; state++ {
					t.Run(name+"/"+state.String(), func(t *testing.T) { check(t, cfg, state, policy, "whole", 0) })
				}
			}
		}
		for kind := range payloads {
			t.Run(name+"/"+kind, func(t *testing.T) {
				check(t, cfg, store.StateCompleted, store.Policy{Retention: 48 * time.Hour}, kind, 0)
				check(t, cfg, store.StateCompleted, store.Policy{Retention: 48 * time.Hour}, kind, 26*time.Hour)
			})
		}
	}
}

// Nobody can read a damaged result of Do, whatever its policy is.
func TestNextOfADamagedResultOfDo(t *testing.T) {
	damaged := payloadsOf(t, store.ID{1}, store.Fingerprint{})["of Do, damaged"]
	n := operate.NextOf(&store.Record{ID: store.ID{1}, State: store.StateCompleted, Payload: damaged})
	if n.Code != protocol.CodeRecordCorrupt || n.Status != 500 || len(n.Or) > 0 {
		t.Errorf("the next answer: %+v", n)
	}
}

func ptr[T any](v T) *T { return &v }
