package protocol_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"slices"
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

// A handler that was cancelled and answers with a 4xx was replayed for a day, as were the
// 499 of a server that shut down.
func TestR31ResponseOfARunThatTheEngineCancelled(t *testing.T) {
	for name, c := range map[string]struct {
		cancel func(b *bench, lose *atomic.Bool)
		cause  error
	}{
		"for MaxRun":     {func(*bench, *atomic.Bool) {}, reprise.ErrRunTooLong},
		"for a shutdown": {func(b *bench, _ *atomic.Bool) { _ = b.guard.Close(ended()) }, reprise.ErrLeaseLost},
		"for its lease":  {func(_ *bench, lose *atomic.Bool) { lose.Store(true) }, reprise.ErrLeaseLost},
	} {
		for preset, want := range map[reprise.Preset]store.RecordState{reprise.Recoverable: 0, reprise.AtMostOnce: store.StateCompleted} {
			for _, status := range []int{400, 404, 409, 422, 425, 429, 499} {
				t.Run(name+", "+preset.String()+", "+strconv.Itoa(status), func(t *testing.T) {
					t.Parallel()
					synctest.Test(t, func(t *testing.T) {
						records := memstore.New()
						var lose atomic.Bool
						st := &hooked{Store: records, OnRenew: func(ctx context.Context, rs []store.RenewRequest) ([]store.RenewStatus, error) {
							if lose.Load() {
								return slices.Repeat([]store.RenewStatus{store.RenewLost}, len(rs)), nil
							}
							return records.Renew(ctx, rs)
						}}
						b := setupOver(t, st, protocol.Config{Preset: preset, Engine: reprise.Config{MaxRun: time.Minute, Observer: reprise.Observers()}})
						first := b.run("k", func(rec *protocol.Recorder, _ http.Header, x *protocol.Exchange) {
							c.cancel(b, &lose)
							<-x.Context().Done()
							if cause := context.Cause(x.Context()); cause != c.cause { //nolint:errorlint // exactly
								t.Errorf("cancelled for %v", cause)
							}
							rec.WriteHeader(status)
						})
						if first.Code != status {
							t.Errorf("answered %d", first.Code)
						}
						if got := onlyRecord(t, records).State; got != want {
							t.Errorf("the record is %v, want %v", got, want)
						}
					})
				})
			}
		}
	}
}

// ended returns a context that has ended.
func ended() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// onlyRecord returns the only record of a store, and the zero value if there is none.
func onlyRecord(t *testing.T, st store.Inspector) store.Record {
	t.Helper()
	page, err := st.List(t.Context(), store.Query{States: store.States(store.StateRunning, store.StateCompleted, store.StateLapsed, store.StateUnknown), Limit: 2})
	if err != nil || len(page.Records) > 1 {
		t.Fatal(page, err)
	}
	return append(page.Records, store.Record{})[0]
}

// A client of another process is asked to come back soon as long as the first request may
// run, and otherwise when its lease has lapsed.
func TestR20RetryAfterEndsWithTheLeaseOfADeadProcess(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		renewed bool
		want    map[int]string // by the second
	}{
		"a dead process":    {want: map[int]string{0: "1", 10: "1", 14: "1", 15: "10", 18: "10", 22: "8", 29: "1"}},
		"a running process": {renewed: true, want: map[int]string{0: "1", 15: "1", 22: "1", 45: "1"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				one := memstore.New()
				var first store.Store = one
				if !test.renewed { // its process can no longer reach the store: its claims stay
					first = &hooked{Store: one, OnRenew: func(context.Context, []store.RenewRequest) ([]store.RenewStatus, error) {
						return nil, store.ErrUnavailable
					}}
				}
				owner := setupOver(t, first, protocol.Config{})
				a := owner.admit("k", "body")
				wantRun(t, a)
				defer a.Exchange.Finish(protocol.Captured{Status: http.StatusCreated})

				other := setupOver(t, one, protocol.Config{Engine: reprise.Config{Observer: reprise.Observers()}})
				began := time.Now()
				for second := range 50 {
					want, ask := test.want[second]
					if ask {
						time.Sleep(time.Until(began.Add(time.Duration(second) * time.Second)))
						if got, _ := other.admit("k", "body").Response.Header.Get("Retry-After"); got != want {
							t.Errorf("after %d s Retry-After is %q, want %q", second, got, want)
						}
					}
				}
			})
		})
	}
}

// A handler that returned has run for as long as it did, whatever the policy does with
// its response: a payment whose body took 55 s to be uploaded was called unknown.
func TestMaxRunBoundsTheHandlerAlone(t *testing.T) {
	const takes = 55 * time.Second
	body := large(6000)
	offloads := protocol.Config{
		Offload: protocol.Offloading{Blobs: new(blobs), Timeout: time.Minute}, Limits: protocol.Limits{ResponseBody: 1000},
	}
	for name, c := range map[string]struct {
		policy  protocol.Config
		handler func(*protocol.Recorder, http.Header, *protocol.Exchange)
	}{
		"a slow blob store": {offloads, writes(body, 500)},
		"a slow blob store, and a stream": {offloads, func(rec *protocol.Recorder, h http.Header, x *protocol.Exchange) {
			writes(body, 500)(rec, h, x)
			rec.Flush()
		}},
		"a slow decision": {protocol.Config{Keep: protocol.Keeping{Decide: func(protocol.Ending) protocol.Decision {
			time.Sleep(takes)
			return protocol.ByPreset
		}}}, writes(body, 500)},
		"a slow annotation": {protocol.Config{Keep: protocol.Keeping{Annotate: func(context.Context) string {
			time.Sleep(takes)
			return "note"
		}}}, writes(body, 500)},
	} {
		for _, preset := range []reprise.Preset{reprise.Recoverable, reprise.AtMostOnce} {
			t.Run(name+", "+preset.String(), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					cfg := c.policy
					cfg.Preset = preset
					cfg.Engine = reprise.Config{Lease: 30 * time.Second, MaxRun: 20 * time.Second, Observer: reprise.Observers()}
					if cfg.Offload.Blobs != nil {
						cfg.Offload.Blobs, cfg.Offload.Dir = &slowBlobs{takes: takes}, t.TempDir()
					}
					b := setupOver(t, memstore.New(), cfg)
					began := time.Now()
					first := b.run("k", func(rec *protocol.Recorder, h http.Header, x *protocol.Exchange) {
						time.Sleep(time.Second)
						c.handler(rec, h, x)
					})
					if took := time.Since(began); took != time.Second+takes {
						t.Errorf("took %v", took)
					}
					if first.Code != 201 || first.Header().Get("Idempotency-Status") != "" {
						t.Errorf("answered %d %v", first.Code, first.Header())
					}
					if again := b.replay("k"); again.Code != 201 || !bytes.Equal(again.Body.Bytes(), body) {
						t.Errorf("the retry is answered %d %.100q", again.Code, again.Body)
					}
				})
			})
		}
	}
}

// slowBlobs takes a while to write a blob.
type slowBlobs struct {
	blobs
	takes time.Duration
}

// Put implements [protocol.BlobStore].
func (b *slowBlobs) Put(ctx context.Context, name string, body *io.SectionReader) error {
	time.Sleep(b.takes)
	return b.blobs.Put(ctx, name, body)
}
