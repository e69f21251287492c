package protocol_test

import (
	"context"
	"net/http"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/store"
)

// fragile is a store that loses leases when it is told to.
type fragile struct {
	store.Store
	loses atomic.Bool
}

func (f *fragile) Renew(ctx context.Context, rs []store.RenewRequest) ([]store.RenewStatus, error) {
	if !f.loses.Load() {
		return f.Store.Renew(ctx, rs)
	}
	lost := make([]store.RenewStatus, len(rs))
	for i := range lost {
		lost[i] = store.RenewLost
	}
	return lost, nil
}

// A handler that was cancelled and answers with a 4xx was replayed for a day, as were the
// 499 of a server that shut down.
func TestR31ResponseOfARunThatTheEngineCancelled(t *testing.T) {
	for name, c := range map[string]struct {
		cancel func(b *bench, st *fragile)
		cause  error
	}{
		"for MaxRun":     {func(*bench, *fragile) {}, reprise.ErrRunTooLong},
		"for a shutdown": {func(b *bench, _ *fragile) { _ = b.guard.Close(ended()) }, reprise.ErrLeaseLost},
		"for its lease":  {func(_ *bench, st *fragile) { st.loses.Store(true) }, reprise.ErrLeaseLost},
	} {
		for preset, want := range map[reprise.Preset]store.RecordState{reprise.Recoverable: 0, reprise.AtMostOnce: store.StateCompleted} {
			for _, status := range []int{400, 404, 409, 422, 425, 429, 499} {
				t.Run(name+", "+preset.String()+", "+strconv.Itoa(status), func(t *testing.T) {
					t.Parallel()
					synctest.Test(t, func(t *testing.T) {
						records := memstore.New()
						st := &fragile{Store: records}
						b := setupOver(t, st, protocol.Config{Preset: preset, Engine: reprise.Config{MaxRun: time.Minute, Observer: reprise.Observers()}})
						first := b.run("k", func(rec *protocol.Recorder, _ http.Header, x *protocol.Exchange) {
							c.cancel(b, st)
							<-x.Context().Done()
							if cause := context.Cause(x.Context()); cause != c.cause { //nolint:errorlint // exactly
								t.Errorf("cancelled for %v", cause)
							}
							rec.WriteHeader(status)
						})
						if first.Code != status {
							t.Errorf("answered %d", first.Code)
						}
						if got := stateOf(t, records); got != want {
							t.Errorf("the record is %v, want %v", got, want)
						}
					})
				})
			}
		}
	}
}

// A client that leaves cancels no run, and the loss of a lease after the handler has
// returned does not affect the judgement of its response.
func TestR31ResponseOfARunThatTheEngineDidNotCancel(t *testing.T) {
	for name, c := range map[string]struct {
		leaves, loses bool
	}{"the client left": {leaves: true}, "cancelled after it returned": {loses: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				records := memstore.New()
				st := &fragile{Store: records}
				b := setupOver(t, st, protocol.Config{
					Engine: reprise.Config{Observer: reprise.Observers()},
					Keep: protocol.Keeping{Decide: func(protocol.Ending) protocol.Decision {
						st.loses.Store(c.loses)
						time.Sleep(time.Minute)
						return protocol.ByPreset
					}},
				})
				ctx, leave := context.WithCancel(t.Context())
				defer leave()
				x := b.admitIn(ctx, "k", http.NoBody).Exchange
				if c.leaves {
					leave()
				}
				x.Finish(protocol.Captured{Status: 404})
				x.Close()
				if got := stateOf(t, records); got != store.StateCompleted {
					t.Errorf("the record is %v, want that the response is kept", got)
				}
			})
		})
	}
}

// ended returns a context that has ended.
func ended() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// stateOf returns the state of the only record of a store, and zero if there is none.
func stateOf(t *testing.T, st store.Inspector) store.RecordState {
	t.Helper()
	page, err := st.List(t.Context(), store.Query{States: store.States(store.StateRunning, store.StateCompleted, store.StateLapsed, store.StateUnknown), Limit: 2})
	if err != nil || len(page.Records) > 1 {
		t.Fatal(page, err)
	}
	if len(page.Records) == 0 {
		return 0
	}
	return page.Records[0].State
}
