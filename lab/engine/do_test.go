package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-go/reprise/conformance/faultstore"
	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/store"
)

// Consumers that follow SettlementOf for each message lose none, despite failures of the
// store and of the function. AtMostOnce runs none twice. A recorded result is that of
// every later delivery.
func TestMessagesOfDoAreSettledAsTheirErrorsSay(t *testing.T) {
	for seed := range 4 {
		for _, preset := range []reprise.Preset{reprise.Recoverable, reprise.AtMostOnce} {
			inBubble(t, fmt.Sprint(preset, "/seed=", seed), func(t *testing.T) {
				q := newMessages(t, preset, uint64(seed))
				q.run()
			})
		}
	}
}

// messages is a queue that delivers each message until it is settled, sometimes twice at
// once, to two processes over one store.
type messages struct {
	t         *testing.T
	preset    reprise.Preset
	processes []*faultyEngine

	mu     sync.Mutex
	random *rand.Rand
	runs   map[string]int
	kept   map[string]string      // the recorded result of a message, as its callers saw it
	met    map[reprise.Action]int // actions that occurred, to show that the test covers them
	status map[reprise.AttemptEnd]int
}

var errRefused = errors.New("refused")

func newMessages(t *testing.T, preset reprise.Preset, seed uint64) *messages {
	t.Helper()
	q := &messages{
		t: t, preset: preset, random: rand.New(rand.NewPCG(seed, 14)),
		runs: make(map[string]int), kept: make(map[string]string), met: make(map[reprise.Action]int), status: make(map[reprise.AttemptEnd]int),
	}
	store := memstore.New()
	for range 2 {
		q.processes = append(q.processes, newFaultyEngine(t, store, reprise.Config{Log: slog.New(slog.DiscardHandler), Lease: 5 * time.Second}))
	}
	return q
}

// draw returns a number below n.
func (q *messages) draw(n int) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.random.IntN(n)
}

func (q *messages) run() {
	const all = 120
	var consumers sync.WaitGroup
	for n := range all {
		for range 2 { // published twice
			consumers.Go(func() {
				inTime(time.Duration(q.draw(30_000)) * time.Millisecond)
				q.consume(fmt.Sprint("message-", n))
			})
		}
	}
	faulty, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(faulty)
		for range 400 {
			q.breakSomething()
			select {
			case <-time.After(100 * time.Millisecond):
			case <-done:
				return
			}
		}
	}()
	consumers.Wait()
	close(done)
	<-faulty
	synctest.Wait()
	if q.met[reprise.Ack] == 0 || q.met[reprise.Nack] == 0 || (q.preset == reprise.AtMostOnce) != (q.met[reprise.Park] > 0) {
		q.t.Errorf("settled: %v, so this shows too little", q.met)
	}
	if q.status[reprise.EndUnrecorded] == 0 {
		q.t.Errorf("completed: %v, so this shows too little", q.status)
	}
}

// breakSomething lets the next calls of a process fail.
func (q *messages) breakSomething() {
	p := q.processes[q.draw(len(q.processes))]
	op := []faultstore.Op{faultstore.Claim, faultstore.Complete, faultstore.Release, faultstore.Renew}[q.draw(4)]
	fault := []faultstore.Fault{
		faultstore.LoseReply(), faultstore.FailBefore(store.ErrUnavailable), faultstore.Hang(), faultstore.HangAfter(),
		faultstore.FailBefore(store.ErrFull), faultstore.Delay(700 * time.Millisecond),
	}[q.draw(6)]
	p.faults.Next(op, fault)
}

// consume delivers a message until it is settled.
func (q *messages) consume(id string) {
	for delivery := 1; ; delivery++ {
		if delivery > 1000 {
			q.t.Errorf("%s is never settled", id)
			return
		}
		action, delay := q.deliver(id)
		q.mu.Lock()
		q.met[action]++
		runs := q.runs[id]
		q.mu.Unlock()
		switch action {
		case reprise.Nack:
			inTime(max(delay, 100*time.Millisecond))
		case reprise.Ack:
			if runs == 0 {
				q.t.Errorf("%s is lost: acknowledged, and never worked on", id)
			}
			return
		default:
			if q.preset != reprise.AtMostOnce || runs > 1 { // it did not run where only its claim came through
				q.t.Errorf("%s is parked after %d runs", id, runs)
			}
			return
		}
	}
}

// deliver works on one delivery.
func (q *messages) deliver(id string) (action reprise.Action, delay time.Duration) {
	p := q.processes[q.draw(len(q.processes))]
	op := reprise.Operation{Scope: "consumer", Key: id, Preset: q.preset, Fingerprint: store.FingerprintOf([]byte(id))}
	codec := reprise.NamedErrors[int](nil, map[string]error{"refused": errRefused})
	done, err := reprise.Do(context.Background(), p.Engine, op, codec, func(context.Context) (int, error) {
		fate, takes := q.draw(10), time.Duration(q.draw(800))*time.Millisecond
		if fate == 9 {
			takes *= 20 // for some longer than the lease
		}
		inTime(takes)
		q.mu.Lock()
		defer q.mu.Unlock()
		switch fate {
		case 0:
			return 0, reprise.Retry(errors.New("nothing happened yet"))
		case 1:
			if q.preset == reprise.Recoverable {
				return 0, errors.New("the bank is away")
			}
			q.runs[id]++
			return 0, errors.New("the bank did not answer")
		case 2:
			q.runs[id]++
			return 0, reprise.Keep(fmt.Errorf("account %d: %w", q.runs[id], errRefused))
		default:
			q.runs[id]++
			return q.runs[id], nil
		}
	})
	q.look(id, done, err)
	return reprise.SettlementOf(err)
}

// look compares the result of a delivery with those before it.
func (q *messages) look(id string, done reprise.DoResult[int], err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.preset == reprise.AtMostOnce && q.runs[id] > 1 {
		q.t.Errorf("%s ran %d times", id, q.runs[id])
	}
	if failed, ok := errors.AsType[*reprise.DoError](err); ok {
		q.status[failed.End]++
		if !failed.Kept || failed.End == reprise.EndUnrecorded {
			return
		}
		if failed.Answer && !errors.Is(err, errRefused) {
			q.t.Errorf("%s: an answer without its name: %v", id, err)
		}
	}
	if done.Unrecorded != nil {
		q.status[reprise.EndUnrecorded]++
		return
	}
	got := fmt.Sprint(done.Value, err)
	if before, ok := q.kept[id]; ok && before != got {
		q.t.Errorf("%s ended as %s, and then as %s", id, before, got)
	}
	q.kept[id] = got
}
