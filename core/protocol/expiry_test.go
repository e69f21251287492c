package protocol_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/store"
)

// finished runs an exchange whose handler set the fields.
func finished(t *testing.T, a protocol.Admission, fields [][2]string, c protocol.Captured) protocol.Reply {
	t.Helper()
	wantRun(t, a)
	defer a.Exchange.Close()
	a.Exchange.Before(func(func(string, string) bool) {})
	a.Exchange.After(func(yield func(string, string) bool) {
		for _, f := range fields {
			if !yield(f[0], f[1]) {
				return
			}
		}
	})
	return a.Exchange.Finish(c)
}

// The expiry is the end of the retention by this process's clock, of the guard or else of
// the engine.
func TestExpiryIsTheEndOfTheRetention(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for i, c := range []struct{ engine, guard, want time.Duration }{
			{0, 0, 24 * time.Hour}, {2 * time.Hour, 0, 2 * time.Hour}, {2 * time.Hour, 72 * time.Hour, 72 * time.Hour},
		} {
			b := setup(t, protocol.Config{Engine: reprise.Config{Retention: c.engine}, Expires: true, Retention: c.guard})
			key := strconv.Itoa(i)
			admission := b.admit(key, "{}")
			time.Sleep(1500 * time.Millisecond) // the handler
			reply := finished(t, admission, nil, protocol.Captured{Status: 201})
			want := protocol.Field{Name: "Idempotency-Key-Expires", Value: fmt.Sprintf("@%d", time.Now().Add(c.want).Unix())}
			if reply.Mark != want {
				t.Errorf("marked %v, want %v", reply.Mark, want)
			}
			time.Sleep(c.want / 2)
			if replay := b.admit(key, "{}").Response; !slices.Contains(slices.Collect(replay.Header.All()), want) {
				t.Errorf("replayed %v", slices.Collect(replay.Header.All()))
			}
		}
	})
}

// Only a response that retries get, and that was recorded before it left, says until when
// it is replayed.
func TestExpiryOfReplays(t *testing.T) {
	t.Parallel()
	const expires = "Idempotency-Key-Expires"
	long := protocol.Captured{Status: 200, Body: make([]byte, 9)}
	tooMany := make([][2]string, 65)
	for i := range tooMany {
		tooMany[i] = [2]string{"X-" + strconv.Itoa(i), "1"}
	}
	for name, c := range map[string]struct {
		cfg            protocol.Config
		fields         [][2]string
		captured       protocol.Captured
		first, replays bool
	}{
		"kept":                  {protocol.Config{}, nil, protocol.Captured{Status: 200}, true, true},
		"summarized":            {protocol.Config{}, nil, long, true, true},
		"too long":              {protocol.Config{Oversize: protocol.Unavailable}, nil, long, false, false},
		"too many fields":       {protocol.Config{}, tooMany, protocol.Captured{Status: 200}, false, false},
		"unkeepable":            {protocol.Config{}, nil, protocol.Captured{Status: 200, Unkeepable: true}, false, false},
		"released":              {protocol.Config{}, nil, protocol.Captured{Status: 503}, false, false},
		"a stream":              {protocol.Config{}, nil, protocol.Captured{Status: 200, Sent: true}, false, true},
		"a stream that is long": {protocol.Config{}, nil, protocol.Captured{Status: 200, Sent: true, Oversize: true}, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.cfg.Expires, c.cfg.Limits.ResponseBody = true, 8
			b := setup(t, c.cfg)
			a := b.admit("k", "{}")
			mark := finished(t, a, c.fields, c.captured).Mark
			if got := mark.Name == expires; got != c.first {
				t.Errorf("the first response has the mark %v", mark)
			}
			again := b.admit("k", "{}")
			if again.Exchange != nil {
				finished(t, again, nil, protocol.Captured{Status: 503})
			}
			if value, got := again.Response.Header.Get(expires); got != c.replays {
				t.Errorf("the retry gets %d that expires at %q", again.Response.Status, value)
			}
		})
	}
}

// The expiry never makes a response too large to be kept.
func TestTheExpiryGivesWayToTheHandlersOwn(t *testing.T) {
	t.Parallel()
	b := setup(t, protocol.Config{Expires: true})
	for n, added := range map[int]int{63: 1, 64: 0} {
		var fields [][2]string
		for i := range n {
			fields = append(fields, [2]string{"X-" + strconv.Itoa(i), "1"})
		}
		key := strconv.Itoa(n)
		reply := finished(t, b.admit(key, "{}"), fields, protocol.Captured{Status: 200})
		if got := reply.Mark.Name != ""; got != (added > 0) {
			t.Errorf("%d fields: marked %v", n, reply.Mark)
		}
		if replay := b.admit(key, "{}").Response; replay.Status != 200 || replay.Header.Len() != n+added+1 {
			t.Errorf("%d fields: replayed %d with %d", n, replay.Status, replay.Header.Len())
		}
	}
}

// A response that is not known to be kept has no expiry: the store did not answer in
// time, or the handler runs unprotected.
func TestNoExpiryWithoutARecord(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		store store.Store
		mark  protocol.Field
	}{
		"unrecorded":  {&hooked{Store: memstore.New(), OnComplete: func(context.Context, store.CompleteRequest) error { return store.ErrUnknown }}, protocol.Field{Name: "Idempotency-Status", Value: "unrecorded"}},
		"unprotected": {unclaimed(store.ErrUnavailable), protocol.Field{Name: "Idempotency-Status", Value: "unprotected"}},
	} {
		engine := must(reprise.New(c.store, reprise.Config{ClaimTimeout: 10 * time.Millisecond, CompleteTimeout: 10 * time.Millisecond, Log: slog.New(slog.DiscardHandler)}))
		guard := must(protocol.Over(engine, protocol.Config{Expires: true, FailOpen: true}))
		reply := finished(t, (&bench{t, guard}).admit("k", "{}"), nil, protocol.Captured{Status: 201})
		if reply.Mark != c.mark {
			t.Errorf("%s: marked %v", name, reply.Mark)
		}
		_ = engine.Close(ended())
	}
}
