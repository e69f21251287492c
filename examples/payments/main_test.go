package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/reprise-go/reprise/servers"
	"github.com/reprise-go/reprise/servers/program"
)

func TestMain(m *testing.M) { program.Main(m, main) }

// start starts a process of the service, and returns it and its address.
func start(t *testing.T, database, bank string, args ...string) (*program.Process, string) {
	t.Helper()
	p := program.Start(t, append(args, "-addr", "127.0.0.1:0", "-postgres-url", database, "-bank-url", bank)...)
	addr := p.Await(t, `listening on (\S+)`)
	return p, addr
}

// The handler keeps an answer, releases what was not sent, and leaves the rest unknown
// until the bank was asked.
func TestEachAnswerOfTheBank(t *testing.T) {
	t.Parallel()
	bank := httptest.NewServer(newPretendBank())
	t.Cleanup(bank.Close)
	database := servers.StartPostgres(t, "fsync=on").URL()
	_, patient := start(t, database, bank.URL, "-settled", "1h")
	_, away := start(t, database, "http://127.0.0.1:1", "-settled", "1h")
	for i, step := range []struct {
		addr, key string
		cents     int64
		want      answer
	}{
		{patient, "booked", 500, answer{201, false, `{"number":1,"reference":"booked","cents":500}`}},
		{patient, "booked", 500, answer{201, true, `{"number":1,"reference":"booked","cents":500}`}},
		{patient, "declined", 2_000_000, answer{402, false, `{"declined":"too much"}`}},
		{away, "declined", 2_000_000, answer{402, true, `{"declined":"too much"}`}},
		{away, "not sent", 500, answer{503, false, "the bank is unavailable, and nothing was paid: try again"}},
		{patient, "not sent", 500, answer{201, false, `{"number":2,"reference":"not sent","cents":500}`}},
		{patient, "lost", 13, answer{504, false, "the bank has not answered: ask again later, with the same key"}},
		{patient, "lost", 13, answer{409, false, "outcome-unknown"}},
	} {
		got, err := post(t.Context(), step.addr, step.key, step.cents)
		if step.want.status == http.StatusConflict && strings.Contains(got.body, step.want.body) {
			got.body = step.want.body // of the problem document
		}
		if err != nil || got != step.want {
			t.Errorf("step %d: %+v, %v; want %+v", i+1, got, err, step.want)
		}
	}
	start(t, database, bank.URL, "-settled", "1s", "-pause", "100ms") // the reconciler that asks
	got, err := payOnce(t.Context(), func() string { return patient }, "lost", 13)
	if want := (answer{201, true, `{"number":3,"reference":"lost","cents":13}`}); err != nil || got != want {
		t.Errorf("after the bank was asked: %+v, %v; want %+v", got, err, want)
	}
}

// Two processes are killed again and again while the bank times out, answers late and
// breaks connections. Every client gets an answer, and gets it again; each payment is in
// the bank's ledger once or never, as its answer says.
func TestKilledAtRandomTheLedgerAgreesWithEveryAnswer(t *testing.T) {
	t.Parallel()
	kills := int64(20)
	if testing.Short() {
		kills = 6
	}
	bank := &roughBank{pretendBank: newPretendBank(), calls: map[string]int{}}
	server := httptest.NewServer(bank)
	t.Cleanup(server.Close)
	database := servers.StartPostgres(t, "fsync=on").URL()
	var addrs [2]atomic.Value
	var processes [2]*program.Process
	begin := func(i int) {
		p, addr := start(t, database, server.URL, "-lease", "1s", "-attempt", "150ms", "-call", "600ms", "-settled", "1500ms", "-pause", "100ms")
		processes[i] = p
		addrs[i].Store(addr)
	}
	begin(0)
	begin(1)
	anyOf := func() string { addr, _ := addrs[rand.IntN(len(addrs))].Load().(string); return addr }

	var killed, paid, reused atomic.Int64
	var clients sync.WaitGroup
	for c := range 8 {
		clients.Go(func() {
			for n := c; killed.Load() < kills && !t.Failed(); n += 8 {
				reference, cents := fmt.Sprintf("payment %d", n), int64(100)
				if n%9 == 7 {
					cents = 2_000_000 // is declined
				}
				first, err := payOnce(t.Context(), anyOf, reference, cents)
				if err != nil {
					t.Errorf("%s: %v", reference, err)
					return
				}
				again, err := payOnce(t.Context(), anyOf, reference, cents)
				if err != nil || !again.replayed || again.status != first.status || again.body != first.body {
					t.Errorf("%s: the retry got %+v, %v, after %+v", reference, again, err, first)
				}
				if first.replayed {
					reused.Add(1) // another attempt, or the reconciler, got the answer
				}
				if entry := bank.entry(reference); (first.status == http.StatusCreated) != (entry != "") || entry != "" && entry != first.body {
					t.Errorf("%s: its client got %+v, and the ledger has %q", reference, first, entry)
				}
				paid.Add(1)
			}
		})
	}
	for ; killed.Load() < kills && !t.Failed(); killed.Add(1) {
		pause(t.Context(), time.Duration(100+rand.IntN(400))*time.Millisecond)
		i := rand.IntN(len(processes))
		processes[i].Kill()
		begin(i)
	}
	clients.Wait()
	t.Logf("%d payments, %d kills, %d answers came from a record", paid.Load(), killed.Load(), reused.Load())
	if reused.Load() == 0 {
		t.Error("no outcome was unknown, so this shows nothing")
	}
}

// roughBank fails the first calls of each payment in its own way.
type roughBank struct {
	*pretendBank

	lock  sync.Mutex
	calls map[string]int // by reference
}

// ServeHTTP implements [http.Handler].
func (b *roughBank) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		b.pretendBank.ServeHTTP(w, r)
		return
	}
	body, _ := io.ReadAll(r.Body)
	var p payment
	_ = json.Unmarshal(body, &p)
	r.Body = io.NopCloser(strings.NewReader(string(body)))
	b.lock.Lock()
	b.calls[p.Reference]++
	rough := b.calls[p.Reference] <= 3 && p.Cents < 1_000_000 // as many as a handler makes
	b.lock.Unlock()
	var n int
	_, _ = fmt.Sscanf(p.Reference, "payment %d", &n)
	switch fault := n % 9; {
	case !rough || fault > 4:
		b.pretendBank.ServeHTTP(w, r)
	case fault == 0: // hangs, and books nothing
		<-r.Context().Done()
	case fault == 1: // books, and never answers
		b.book(r, p)
		<-r.Context().Done()
	case fault == 2: // books when the service no longer waits
		<-r.Context().Done()
		b.book(r, p)
	case fault == 3: // breaks the connection, and books nothing
		panic(http.ErrAbortHandler)
	case fault == 4: // books, and breaks the connection
		b.book(r, p)
		panic(http.ErrAbortHandler)
	}
}

// entry returns what the ledger has about a payment: its receipts.
func (b *roughBank) entry(reference string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var receipts []string
	for _, entry := range b.booked {
		if entry.Reference == reference {
			text, _ := json.Marshal(entry)
			receipts = append(receipts, string(text))
		}
	}
	return strings.Join(receipts, " and ")
}

// answer is a response to a client.
type answer struct {
	status   int
	replayed bool
	body     string
}

// payOnce repeats a payment until it is booked or declined, for two minutes at most.
func payOnce(ctx context.Context, addr func() string, reference string, cents int64) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	for {
		got, err := post(ctx, addr(), reference, cents)
		switch {
		case err == nil && (got.status == http.StatusCreated || got.status == http.StatusPaymentRequired):
			return got, nil
		case ctx.Err() != nil:
			return got, fmt.Errorf("last %+v: %w", got, errors.Join(err, ctx.Err()))
		case err == nil && got.status != http.StatusConflict && got.status != http.StatusServiceUnavailable && got.status != http.StatusGatewayTimeout:
			return got, fmt.Errorf("answered %+v", got)
		}
		pause(ctx, 50*time.Millisecond)
	}
}

var client = &http.Client{Timeout: 10 * time.Second}

// post sends a payment, whose reference is its key.
func post(ctx context.Context, addr, reference string, cents int64) (answer, error) {
	body := fmt.Sprintf(`{"reference":%q,"cents":%d}`, reference, cents)
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+addr+"/payments", strings.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	r.Header.Set("Idempotency-Key", `"`+reference+`"`)
	res, err := client.Do(r)
	if err != nil {
		return answer{}, err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	return answer{res.StatusCode, res.Header.Get("Idempotent-Replayed") == "true", strings.TrimSpace(string(text))}, err
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
