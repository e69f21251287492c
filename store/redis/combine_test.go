package repriseredis

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/reprise-go/reprise/core/store"
)

// The confirmation of a batch occupies no lane, and holds up only those that wrote.
func TestOnlyWritesWaitForTheirConfirmation(t *testing.T) {
	t.Parallel()
	for _, writes := range []string{"a c", "b", "d", "a b c d", ""} {
		for _, panics := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				free, confirmed := make(chan struct{}), make(chan struct{})
				b := newCombiner(func(_ context.Context, batch []*command) (confirm func()) {
					<-free
					var open []*command
					for _, c := range batch {
						c.SetVal("+" + c.key)
						if strings.Contains(writes, c.key) {
							c.unconfirmed, c.ackErr = true, errNotConfirmed
							open = append(open, c)
						}
					}
					if len(open) == 0 {
						return nil
					}
					return func() {
						<-confirmed
						if panics {
							panic("hook")
						}
						for _, c := range open {
							c.confirmed(nil)
						}
					}
				}, time.Hour)
				calls := map[string]chan error{}
				for range lanes { // the others queue
					go b.send(t.Context(), &command{key: "-", StringCmd: redis.NewStringCmd(t.Context())})
				}
				synctest.Wait()
				for _, key := range []string{"a", "b", "c", "d"} {
					done := make(chan error, 1)
					calls[key] = done
					go func() {
						c := &command{key: key, StringCmd: redis.NewStringCmd(t.Context())}
						b.send(t.Context(), c)
						if done <- c.ackErr; string(c.reply()) != "+"+key {
							t.Errorf("%s got the answer %q, %v", key, c.reply(), c.sendErr)
						}
					}()
				}
				synctest.Wait()
				close(free)
				synctest.Wait()
				for key, done := range calls {
					if (len(done) > 0) == strings.Contains(writes, key) {
						t.Errorf("of %q, %s has returned: %v", writes, key, len(done) > 0)
					}
				}
				close(confirmed)
				for key, done := range calls {
					if err := <-done; (err != nil) != (panics && strings.Contains(writes, key)) {
						t.Errorf("of %q, %s: %v", writes, key, err)
					}
				}
			})
		}
	}
}

// A caller may leave, and use the memory of its payload again, while its command is on
// its way.
func TestACommandThatIsLeftIsTheSenders(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		free := make(chan struct{})
		var sent atomic.Int64
		b := newCombiner(func(_ context.Context, batch []*command) (confirm func()) {
			<-free
			for _, c := range batch {
				if arg, ok := c.Args()[1].(*blob); !ok || string(*arg) != "payload" {
					t.Errorf("sent the arguments %v", c.Args())
				}
				c.SetVal("D")
				sent.Add(1)
			}
			return nil
		}, time.Hour)
		ctx, cancel := context.WithCancel(t.Context())
		for range lanes + 8 {
			go func() {
				payload := []byte("payload")
				c := &command{payload: payload}
				c.StringCmd = redis.NewStringCmd(ctx, "set", &c.payload)
				b.send(ctx, c)
				copy(payload, "another")
				c.SetVal("another")
			}()
		}
		synctest.Wait()
		cancel()
		synctest.Wait()
		close(free)
		synctest.Wait()
		if n := sent.Load(); n < lanes {
			t.Errorf("%d commands were on their way, want %d", n, lanes)
		}
	})
}

// A server that hangs holds the lane of a batch no longer than a batch may take, also
// where only the context of a caller bounds a call, and the batch is one call.
func TestNoBatchHoldsItsLaneForEver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var sending atomic.Int64
		b := newCombiner(func(ctx context.Context, _ []*command) (confirm func()) {
			sending.Add(1)
			<-ctx.Done()
			sending.Add(-1)
			return nil
		}, time.Minute)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		for range 3 {
			go b.send(ctx, &command{StringCmd: redis.NewStringCmd(ctx)})
			synctest.Wait()
		}
		if n := sending.Load(); n != 3 {
			t.Errorf("%d batches are on their way, want 3", n)
		}
		time.Sleep(time.Minute) //nolint:forbidigo // by the clock of the bubble
		synctest.Wait()
		if n := sending.Load(); n > 0 {
			t.Fatalf("%d lanes are still busy", n)
		}
	})
}

// A caller waits for its batch no longer than its context lasts.
func TestACallerLeavesItsBatchInTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newCombiner(func(ctx context.Context, _ []*command) (confirm func()) {
			<-ctx.Done()
			return nil
		}, time.Hour)
		start := time.Now()
		for _, sent := range []bool{true, true, false} { // one leads, one goes with a lane, one has no time
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			if !sent {
				cancel()
			}
			c := &command{StringCmd: redis.NewStringCmd(ctx)}
			before := time.Now()
			b.send(ctx, c)
			cancel()
			if took := time.Since(before); took > time.Second {
				t.Errorf("a call of a second took %v", took)
			}
			if errors.Is(classify(c.sendErr).class, store.ErrBusy) == sent {
				t.Errorf("sent %v: %v", sent, c.sendErr)
			}
		}
		time.Sleep(2 * time.Hour) //nolint:forbidigo // by the clock of the bubble
		if time.Since(start) < time.Hour {
			t.Error("no time has passed")
		}
	})
}

// The context of a batch lasts until it is confirmed, and no longer.
func TestABatchEndsWithItsConfirmation(t *testing.T) {
	t.Parallel()
	for _, writes := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			var ended func() error
			b := newCombiner(func(ctx context.Context, batch []*command) (confirm func()) {
				ended = ctx.Err
				if !writes {
					return nil
				}
				batch[0].unconfirmed = true
				return func() {
					synctest.Wait()
					if err := ctx.Err(); err != nil {
						t.Errorf("the batch ended before its confirmation: %v", err)
					}
				}
			}, time.Hour)
			b.send(t.Context(), &command{StringCmd: redis.NewStringCmd(t.Context())})
			synctest.Wait()
			if ended() == nil {
				t.Error("the batch goes on after its end")
			}
		})
	}
}

// A command in a batch decides like one that is sent alone: both halves of a native
// claim, the question for the validity, and the result of a repetition.
func TestACombinedClaimDecidesLikeAnother(t *testing.T) {
	t.Parallel()
	f := confirming(t, claimed, ":1\r\n")
	client := newClient(t, f)
	s, err := New(client, Config{Prefix: servicePrefix, Durability: Acked(1)})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := claim(t, s); err != nil || got.Fence != 1999 || f.seen() != "1 set, 1 wait 1 1000" {
		t.Errorf("claim = %+v, %v, sent %q; want one write and its wait", got, err, f.seen())
	}
}

// A confirmation that came too late to wait on its own connection repeats a claim by the
// script, whose answer the caller gets. A failure then leaves open whether it is held.
func TestARepetitionInABatchAnswersItsCaller(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		repetition string
		want       error
		sent       string
	}{
		{claimed, nil, "set, evalsha, wait 1 1000"},
		{bulk("M"), nil, "set, evalsha"}, // it did not write
		{"-BUSY Redis is busy running a script.\r\n", store.ErrUnknown, "set, evalsha"},
	} {
		f := newFake(t, func(_, _ int, command []string) string {
			switch command[0] {
			case "evalsha":
				return c.repetition
			case "wait":
				return ":1\r\n"
			default:
				return claimed
			}
		})
		client := newClient(t, f)
		s, err := New(client, Config{Prefix: servicePrefix, Durability: Acked(1)})
		if err != nil {
			t.Fatal(err)
		}
		slots := s.confirmSlots.of(client).slots
		for range cap(slots) {
			slots <- struct{}{}
		}
		type answer struct {
			store.ClaimResult
			error
		}
		answered := make(chan answer)
		go func() { got, err := claim(t, s); answered <- answer{got, err} }()
		for !strings.Contains(f.seen(), "set") || client.PoolStats().IdleConns == 0 { // given back, as there was no slot
			runtime.Gosched()
		}
		<-slots
		got := <-answered
		if !errors.Is(got.error, c.want) || c.repetition == claimed && got.Fence != 7 {
			t.Errorf("after %q: %+v, %v; want %v", c.repetition, got.ClaimResult, got.error, c.want)
		}
		if f.sent() != c.sent {
			t.Errorf("after %q: sent %q, want %q", c.repetition, f.sent(), c.sent)
		}
	}
}
