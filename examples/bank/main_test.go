package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/protocol/stored"
	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/servers"
)

// hurried are the limits of the tests.
var hurried = limits{lease: time.Second, attempt: 150 * time.Millisecond, call: 600 * time.Millisecond, settled: 1500 * time.Millisecond, pause: 100 * time.Millisecond}

// stuck is how long an outcome may be unknown: what the limits allow, and time for
// processes that are killed and started again on a busy machine.
var stuck = hurried.lease + hurried.settled + hurried.pause + time.Minute

// Processes of the service die at every place where one can, while the bank times out,
// answers late, breaks connections and restarts. In the end each payment is in the bank's
// ledger once or never, as its client and its record say, and the reconcilers needed no
// operator but for the payments about which the bank says nothing.
func TestKilledInEveryPlaceTheLedgerAgreesWithEveryRecord(t *testing.T) {
	t.Parallel()
	payments, rounds := 120, 1
	if os.Getenv("REPRISE_SOAK") != "" {
		payments, rounds = 2000, 8
	}
	for name, setup := range map[string]struct {
		url           func(t *testing.T) string
		transactional bool
	}{
		"redis":    {url: func(t *testing.T) string { return servers.Redis.Start(t).URL() }},
		"postgres": {url: func(t *testing.T) string { return servers.StartPostgres(t, "fsync=on").URL() }},
		// A transactional attempt that dies leaves no record, because everything rolls back.
		// So its clients must not give up, and what keeps the ledger exact is the derived key.
		"postgres-tx": {url: func(t *testing.T) string { return servers.StartPostgres(t, "fsync=on").URL() }, transactional: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if setup.transactional && testing.Short() {
				t.Skip("left to make check: payments over the transactional store")
			}
			url, bank := setup.url(t), startRoughBank(t)
			st, closeStore, err := openRecords(t.Context(), url, setup.transactional)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(closeStore)
			records, _ := store.As[store.Inspector](st)
			s := &scenario{T: t, bank: bank, records: records, patient: setup.transactional, results: map[int]result{}}
			s.fleet = startFleet(t, rounds, mortalStoreURL+"="+url, mortalBank+"=http://"+bank.addr, fmt.Sprintf("%s=%t", mortalTransactional, setup.transactional))
			s.pay(payments, func() bool { return s.dying(rounds) })
			left := s.awaitReconciled()
			s.checkLedger()

			settled := bank.told()
			t.Logf("%d payments, %d booked; killed at each of %d places; %d outcomes found out, %d left to an operator; none was open for longer than %v",
				len(s.results), len(bank.ledger), len(s.died), settled, left, s.longest())
			if bank.early*2 > settled {
				t.Errorf("%d of %d lookups came before the bank had settled the call", bank.early, settled)
			}
			if settled < payments/5 || settled*100 < (settled+left)*95 {
				t.Errorf("%d of %d unknown outcomes were found out without an operator, want 95%%, and at least %d", settled, settled+left, payments/5)
			}
		})
	}
}

// scenario is one run of the test.
type scenario struct {
	*testing.T
	*fleet

	bank    *roughBank
	records store.Inspector
	patient bool // whether every client goes on until it knows

	mu      sync.Mutex
	results map[int]result
}

// result is what a client learned.
type result struct {
	status int // 0: it gave up
	body   string
	took   time.Duration
}

// pay makes payments, as many and until nothing dies any more.
func (s *scenario) pay(payments int, dying func() bool) {
	ctx, cancel := context.WithTimeout(s.Context(), 10*time.Minute)
	defer cancel()
	var next atomic.Int64
	var clients sync.WaitGroup
	for range 16 {
		clients.Go(func() {
			for id := int(next.Add(1)); (id <= payments || dying() && id <= 10*payments) && ctx.Err() == nil && !s.Failed(); id = int(next.Add(1)) {
				got := s.payOnce(ctx, id)
				s.mu.Lock()
				s.results[id] = got
				s.mu.Unlock()
			}
		})
	}
	clients.Wait()
	if dying() {
		s.Errorf("processes died at %v only", s.died)
	}
}

// payOnce repeats a request until its client knows, or gives up.
func (s *scenario) payOnce(ctx context.Context, id int) result {
	p := payment{Reference: reference(id), Cents: 100}
	if id%8 == 6 {
		p.Cents = 2_000_000 // is declined
	}
	body, err := json.Marshal(p)
	if err != nil {
		s.Error(err)
	}
	began := time.Now()
	for ctx.Err() == nil && !s.Failed() {
		status, answer, err := post(ctx, s.addr(), keyOf(id), string(body))
		switch {
		case err == nil && (status == http.StatusCreated || status == http.StatusPaymentRequired):
			return result{status, answer, time.Since(began)}
		case err == nil && status != http.StatusConflict && status != http.StatusServiceUnavailable && status != http.StatusGatewayTimeout:
			s.Errorf("payment %d is answered %d %s", id, status, answer)
		case faultOf(id) == mute && (status == http.StatusGatewayTimeout || strings.Contains(answer, "outcome-unknown")), !s.patient && id%5 == 2:
			return result{}
		case time.Since(began) > stuck:
			s.Errorf("payment %d is open for longer than %v: %d %s %v", id, stuck, status, answer, err)
		}
		pause(ctx, 50*time.Millisecond)
	}
	return result{}
}

func keyOf(id int) string { return fmt.Sprintf("key-%d", id) }

var client = new(http.Client)

func post(ctx context.Context, addr, key, body string) (status int, answer string, err error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+addr+"/payments", strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	req.Header.Set("Idempotency-Key", `"`+key+`"`)
	res, err := client.Do(req)
	if err != nil {
		return 0, "", err
	}
	data, err := io.ReadAll(res.Body)
	return res.StatusCode, string(data), errors.Join(err, res.Body.Close())
}

// awaitReconciled waits until no outcome is open but those that the bank keeps to itself,
// and returns how many these are.
func (s *scenario) awaitReconciled() (left int) {
	ctx, cancel := context.WithTimeout(s.Context(), stuck)
	defer cancel()
	for {
		open := 0
		left = 0
		for id := range s.results {
			switch rec, err := s.records.Inspect(ctx, idOfRecord(id)); {
			case errors.Is(err, store.ErrNotFound):
			case err != nil:
				s.Fatalf("payment %d: %v", id, err)
			case rec.State == store.StateCompleted:
			case faultOf(id) == mute && rec.State != store.StateRunning:
				left++
			default:
				open++
			}
		}
		if open == 0 {
			return left
		}
		pause(ctx, 100*time.Millisecond)
		if ctx.Err() != nil {
			s.Fatalf("%d outcomes are open after %v", open, stuck)
		}
	}
}

func idOfRecord(id int) store.ID { return store.DeriveID("anonymous", "", keyOf(id)) }

// checkLedger compares the bank's ledger with what clients learned and records say.
func (s *scenario) checkLedger() {
	booked := s.bank.bookings()
	for id, client := range s.results {
		rec, err := s.records.Inspect(s.Context(), idOfRecord(id))
		var recorded protocol.Response
		if err == nil && rec.State == store.StateCompleted {
			recorded, err = stored.Decode(rec.Payload)
		}
		switch {
		case booked[id] > 1:
			s.Errorf("payment %d is booked %d times", id, booked[id])
		case faultOf(id) == mute && (rec.State == store.StateUnknown || rec.State == store.StateLapsed): // for an operator
		case err != nil && !errors.Is(err, store.ErrNotFound):
			s.Errorf("payment %d: %v", id, err)
		case (recorded.Status == http.StatusCreated) != (booked[id] == 1):
			s.Errorf("payment %d is booked %d times, and its record says %d", id, booked[id], recorded.Status)
		case client.status != 0 && (client.status != recorded.Status || client.body != string(recorded.Body)):
			s.Errorf("payment %d: its client got %d %s, and its record says %d %s", id, client.status, client.body, recorded.Status, recorded.Body)
		case rec.Resolved && rec.CompletedAt.Sub(rec.ClaimedAt) > stuck:
			s.Errorf("payment %d was open for %v", id, rec.CompletedAt.Sub(rec.ClaimedAt))
		}
	}
}

// longest returns how long the client that waited longest did.
func (s *scenario) longest() (longest time.Duration) {
	for _, got := range s.results {
		longest = max(longest, got.took)
	}
	return longest
}
