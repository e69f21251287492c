package protocol_test

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/internal/record"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/store"
)

func secret(t *testing.T, id string) protocol.Secret {
	t.Helper()
	return must(protocol.NewSecret(id, bytes.Repeat([]byte(id), 32)))
}

func (b *bench) with(change func(*protocol.Config)) *bench {
	b.t.Helper()
	return &bench{b.t, must(b.guard.With(change))}
}

func answering(body string) func(*protocol.Recorder, http.Header, *protocol.Exchange) {
	return func(w *protocol.Recorder, h http.Header, _ *protocol.Exchange) {
		h.Set("Content-Type", "text/plain")
		w.WriteHeader(http.StatusCreated)
		_, _ = w.WriteString(body)
	}
}

// A policy that construction accepts replays a sealed response until its retention ends,
// also where the completion went on in the background for as long as it may: until its
// lease has passed. The envelope has whole seconds.
func TestSealedReplayOpensUntilItsRetentionEnds(t *testing.T) {
	t.Parallel()
	const retention, background, lease = time.Hour, 10 * time.Minute, 5 * time.Minute
	accepted := 0
	for _, age := range []time.Duration{
		retention, retention + time.Second, retention + background, retention + background + time.Minute,
		retention + background + time.Minute + 2*time.Second, retention + background + lease + time.Minute + 2*time.Second, 2 * retention,
	} {
		for _, late := range []time.Duration{0, background - time.Second, background + lease/2} {
			synctest.Test(t, func(t *testing.T) {
				time.Sleep(900 * time.Millisecond)
				st, until := memstore.New(), time.Now().Add(late)
				away := &hooked{Store: st, OnComplete: func(ctx context.Context, r store.CompleteRequest) error {
					if time.Now().Before(until) {
						return store.ErrUnavailable
					}
					return st.Complete(ctx, r)
				}}
				guard, err := protocol.New(away, protocol.Config{
					Engine: reprise.Config{Lease: lease}, Retention: retention, Seal: protocol.Sealing{Secret: secret(t, "1"), MaxAge: age},
				})
				if err != nil {
					return
				}
				accepted++
				defer guard.Close(context.WithoutCancel(t.Context()))
				b := &bench{t, guard}
				b.run("key", answering("order"))
				completed := func() (at time.Time) {
					for {
						rec, err := st.Inspect(t.Context(), store.DeriveID("tenant", "", "key"))
						if err == nil && rec.State == store.StateCompleted {
							return rec.CompletedAt
						}
						time.Sleep(time.Second)
					}
				}()
				time.Sleep(time.Until(completed.Add(retention - time.Millisecond)))
				if w := b.replay("key"); w.Code != http.StatusCreated {
					t.Errorf("MaxAge %v, completed %v late: answered %d in the last millisecond: %s", age, late, w.Code, w.Body)
				}
			})
		}
	}
	if accepted == 0 {
		t.Error("no MaxAge is accepted")
	}
}

// The order in which a deployment turns sealing on and off: every response recorded on
// the way is replayed afterwards, and only Strict refuses unsealed ones.
func TestSealingIsTurnedOnAndOff(t *testing.T) {
	t.Parallel()
	records, log := memstore.New(), new(eventLog)
	b := setupOver(t, records, protocol.Config{Label: "orders", Engine: reprise.Config{Observer: log}})
	reads := b.with(func(c *protocol.Config) { c.Seal.OtherSecrets = []protocol.Secret{secret(t, "1")} })
	one := b.with(func(c *protocol.Config) { c.Seal = protocol.Sealing{Secret: secret(t, "1")} })
	strict := one.with(func(c *protocol.Config) { c.Seal.Strict = true })
	for key, by := range map[string]*bench{"plain": b, "reader": reads, "secret": one} {
		if first := by.run(key, answering("answer "+key)); first.Code != http.StatusCreated {
			t.Fatal(first.Code)
		}
		payload := must(records.Inspect(t.Context(), store.DeriveID("tenant", "", key))).Payload
		if sealed := !bytes.Contains(payload, []byte("answer")); sealed != (by == one) || sealed != record.IsSealed(payload) {
			t.Errorf("%s: %q", key, payload)
		}
	}
	for _, c := range []struct {
		name string
		by   *bench
		want map[string]int
	}{
		{"off", b, map[string]int{"plain": 201, "reader": 201, "secret": 500}},
		{"reads", reads, map[string]int{"plain": 201, "reader": 201, "secret": 201}},
		{"on", one, map[string]int{"plain": 201, "reader": 201, "secret": 201}},
		{"strict", strict, map[string]int{"plain": 500, "reader": 500, "secret": 201}},
	} {
		for key, want := range c.want {
			got := c.by.run(key, func(*protocol.Recorder, http.Header, *protocol.Exchange) { t.Errorf("%s: %s ran again", c.name, key) })
			switch {
			case got.Code != want:
				t.Errorf("%s: %s gets %d, want %d", c.name, key, got.Code, want)
			case want == 201 && (got.Body.String() != "answer "+key || got.Header().Get("Idempotent-Replayed") != "true"):
				t.Errorf("%s: %s gets %q", c.name, key, got.Body)
			case want == 500 && !strings.Contains(got.Body.String(), "record-corrupt"):
				t.Errorf("%s: %s gets %q", c.name, key, got.Body)
			}
		}
	}
	var said strings.Builder
	for _, e := range log.events {
		if e.Err != nil {
			said.WriteString(e.Err.Error() + "\n")
		}
	}
	says := said.String()
	for _, part := range []string{`sealed with the secret "1", which Config.Seal does not have`, "is not sealed, which Config.Seal.Strict refuses"} {
		if !strings.Contains(says, part) {
			t.Errorf("no event says %s:\n%s", part, says)
		}
	}
}

// An attempt that finds the response of another one in the record opens it, whether its
// own policy seals or not.
func TestSealedResponseOfAnotherAttemptIsSent(t *testing.T) {
	t.Parallel()
	for _, on := range []bool{true, false} {
		records, last := memstore.New(), store.ClaimRequest{}
		spying := &hooked{Store: records, OnClaim: func(ctx context.Context, r store.ClaimRequest) (store.ClaimResult, error) {
			last = r
			return records.Claim(ctx, r)
		}}
		engine := must(reprise.New(spying, reprise.Config{}))
		seal := protocol.Sealing{OtherSecrets: []protocol.Secret{secret(t, "1")}}
		if on {
			seal.Secret = secret(t, "2")
		}
		mine := must(protocol.Over(engine, protocol.Config{Seal: seal}))
		a := (&bench{t, mine}).admit("k", "body")
		wantRun(t, a)
		// The record is lost, and another process runs the operation.
		if err := records.Release(t.Context(), last.ID, last.Owner); err != nil {
			t.Fatal(err)
		}
		other := must(reprise.New(records, reprise.Config{}))
		guard := must(protocol.Over(other, protocol.Config{Seal: protocol.Sealing{Secret: secret(t, "1")}}))
		(&bench{t, guard}).run("k", answering("the other's"))
		reply := a.Exchange.Finish(protocol.Captured{Status: 200, Body: []byte("mine")})
		a.Exchange.Close()
		if !reply.Replace || reply.Response.Status != 201 || string(reply.Response.Body) != "the other's" {
			t.Errorf("sealing %t: %t, %d %q", on, reply.Replace, reply.Response.Status, reply.Response.Body)
		}
		if err := errors.Join(engine.Close(t.Context()), other.Close(t.Context())); err != nil {
			t.Error(err)
		}
	}
}

// Sealing costs these allocations and no more: the derivation of the key, its
// schedule, and the plaintext of a replay.
func TestCostOfSealing(t *testing.T) { //nolint:paralleltest // counts allocations
	if raceEnabled {
		t.Skip("pools are not kept under the race detector; go test without -race counts")
	}
	costs := func(cfg protocol.Config) (newKey, replay float64) {
		b, _ := observed(t, cfg)
		n := 0
		keys := make([]string, 600)
		for i := range keys {
			keys[i] = "0000000000000000" + strings.Repeat("x", i%200) + string(rune('a'+i/200))
		}
		once := func(key string) {
			a := b.admit(key, "")
			if a.Exchange != nil {
				a.Exchange.Finish(protocol.Captured{Status: 201, Body: []byte("answer")})
				a.Exchange.Close()
			}
		}
		newKey = testing.AllocsPerRun(len(keys)-1, func() { once(keys[n]); n++ })
		replay = testing.AllocsPerRun(500, func() { once(keys[0]) })
		return newKey, replay
	}
	plainNew, plainReplay := costs(protocol.Config{})
	sealedNew, sealedReplay := costs(protocol.Config{Seal: protocol.Sealing{Secret: secret(t, "1")}})
	if got := sealedNew - plainNew; got > 19 {
		t.Errorf("%v allocations more for a new key, want 19 at most", got)
	}
	if got := sealedReplay - plainReplay; got > 19 {
		t.Errorf("%v allocations more for a replay, want 19 at most", got)
	}
}

// Bodies that are offloaded are sealed, too.
func TestSealedBodiesAreOffloaded(t *testing.T) {
	t.Parallel()
	body := bytes.Repeat([]byte("the account of Jane Doe "), 10_000)
	o := offload(t, func(c *protocol.Config) { c.Seal = protocol.Sealing{Secret: secret(t, "1")} })
	for _, key := range []string{"a", "b"} {
		if first := o.run(key, writes(body, 1000)); first.Code != 201 || !bytes.Equal(first.Body.Bytes(), body) {
			t.Errorf("first answered %d with %d bytes", first.Code, first.Body.Len())
		}
		w := o.replay(key)
		if w.Code != 201 || !bytes.Equal(w.Body.Bytes(), body) || w.Header().Get("Content-Length") != strconv.Itoa(len(body)) {
			t.Errorf("replayed %d %v with %d bytes", w.Code, w.Header(), w.Body.Len())
		}
	}
	if names := o.store.names(); len(names) != 2 {
		t.Errorf("equal bodies have the blobs %v, want one for each", names)
	}
	for name, content := range o.store.content {
		if bytes.Contains(content, []byte("Jane Doe")) {
			t.Errorf("%s is in the clear", name)
		}
	}
	// A guard that has stopped sealing reads them, and one that seals reads those of
	// before.
	off := o.with(func(c *protocol.Config) {
		c.Seal = protocol.Sealing{OtherSecrets: []protocol.Secret{secret(t, "1")}}
	})
	if w := off.replay("a"); !bytes.Equal(w.Body.Bytes(), body) {
		t.Errorf("without sealing, replayed %d bytes", w.Body.Len())
	}
	off.run("c", writes(body, 1000))
	if w := o.replay("c"); !bytes.Equal(w.Body.Bytes(), body) {
		t.Errorf("of before sealing, replayed %d bytes", w.Body.Len())
	}
	o.store.change(func(b []byte) []byte { b[len(b)/2] ^= 1; return b })
	o.wantProblem("a", 409, protocol.CodeResultUnavailable)
}
