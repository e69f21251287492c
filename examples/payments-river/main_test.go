package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/reprise-go/reprise/lab/servers"
)

func TestMain(m *testing.M) { os.Exit(servers.Main{M: m}.Run()) }

// The service is killed again and again, the bank loses a third of its responses, and
// every job is inserted twice. In the end every order is there once, the bank was charged
// once for it, and the charge is booked once.
func TestKilledAtRandomEachOrderIsChargedAndBookedOnce(t *testing.T) {
	t.Parallel()
	const kills = 12
	bank := newBank(t)
	service := build(t, servers.StartPostgres(t, "fsync=on").URL(), bank.server.URL)
	service.start(t)
	conn, err := pgx.Connect(t.Context(), service.url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))

	work, stop := context.WithTimeout(t.Context(), 4*time.Minute)
	defer stop()
	var answered, killed atomic.Int64
	var wg sync.WaitGroup
	for c := range 4 {
		wg.Go(func() {
			for n := 0; killed.Load() < kills; n++ {
				note := fmt.Sprintf("order %d of client %d", n, c)
				first, err := service.sendUntilAnswered(work, note)
				if err != nil {
					t.Errorf("%s: %v", note, err)
					return
				}
				again, err := service.sendUntilAnswered(work, note)
				if err != nil || again != first {
					t.Errorf("%s: the retry got %q (%v), the first answer was %q", note, again, err, first)
				}
				answered.Add(1)
			}
		})
	}
	for killed.Load() < kills && work.Err() == nil {
		pause(work, time.Duration(50+rand.IntN(250))*time.Millisecond)
		service.kill(t)
		service.start(t)
		if _, err := conn.Exec(work, insertAgain); err != nil {
			t.Error(err)
		}
		killed.Add(1)
	}
	wg.Wait()
	if _, err := conn.Exec(work, insertAgain); err != nil { // the rest of them
		t.Fatal(err)
	}

	var jobs, open, tries int64
	for { // jobs that a killed process held are found again within a minute
		const count = `SELECT count(*), count(*) FILTER (WHERE state <> 'completed'), sum(attempt) FROM river_job`
		if err := conn.QueryRow(work, count).Scan(&jobs, &open, &tries); err != nil {
			t.Fatalf("%d of %d jobs are open: %v", open, jobs, err)
		}
		if open == 0 {
			break
		}
		pause(work, 100*time.Millisecond)
	}
	var rows, notes, charged, bookings, booked int64
	const count = `SELECT count(*), count(DISTINCT note), count(charge), (SELECT count(*) FROM bookings),
		(SELECT count(*) FROM bookings b JOIN orders o ON (b.order_id, b.charge, b.amount) = (o.id, o.charge, o.amount)) FROM orders`
	if err := conn.QueryRow(work, count).Scan(&rows, &notes, &charged, &bookings, &booked); err != nil {
		t.Fatal(err)
	}
	if charged != rows || bookings != rows || booked != rows || jobs != 2*rows {
		t.Errorf("%d orders: %d are charged, with %d bookings, of which %d are theirs, in %d jobs", rows, charged, bookings, booked, jobs)
	}
	if want := answered.Load(); rows != want || notes != want || want == 0 {
		t.Errorf("%d rows for %d orders, want %d of each and some", rows, notes, want)
	}
	asked := bank.check(t, rows)
	t.Logf("%d orders, %d kills, %d tries of %d jobs, the bank was asked %d times", rows, kills, tries, jobs, asked)
}

// insertAgain inserts each job a second time, as a program does that got no answer from
// the database. Each gets its own number.
const insertAgain = `INSERT INTO river_job (args, kind, max_attempts, queue, priority)
	SELECT args, kind, max_attempts, queue, priority FROM river_job GROUP BY args, kind, max_attempts, queue, priority HAVING count(*) = 1`

// bank charges once for each key, and returns the same number to every repetition. It
// loses responses, as networks do.
type bank struct {
	server *httptest.Server

	mu      sync.Mutex
	charges map[string]string // by key: the order
	asked   int
}

func newBank(t *testing.T) *bank {
	t.Helper()
	b := &bank{charges: make(map[string]string)}
	b.server = httptest.NewServer(b)
	t.Cleanup(b.server.Close)
	return b
}

// ServeHTTP implements [http.Handler].
func (b *bank) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	key := r.Header.Get("Idempotency-Key")
	body, err := io.ReadAll(r.Body)
	if err != nil || key == "" {
		http.Error(w, "want a key", http.StatusBadRequest)
		return
	}
	b.mu.Lock()
	b.asked++
	if known, charged := b.charges[key]; charged && known != string(body) {
		b.mu.Unlock()
		http.Error(w, "the key belongs to another charge", http.StatusUnprocessableEntity)
		return
	}
	b.charges[key] = string(body)
	b.mu.Unlock()
	if rand.IntN(3) == 0 {
		panic(http.ErrAbortHandler) // it is charged, and the response is lost
	}
	w.WriteHeader(http.StatusCreated)
	_ = json.NewEncoder(w).Encode(map[string]string{"charge": "ch_" + key})
}

// check demands one charge for each order.
func (b *bank) check(t *testing.T, orders int64) (asked int) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	paid := map[string]bool{}
	for _, order := range b.charges {
		paid[order] = true
	}
	if int64(len(b.charges)) != orders || int64(len(paid)) != orders {
		t.Errorf("%d charges of %d different ones for %d orders", len(b.charges), len(paid), orders)
	}
	if b.asked <= len(b.charges) {
		t.Errorf("the bank was asked %d times for %d charges: nothing was repeated, so this shows nothing", b.asked, len(b.charges))
	}
	return b.asked
}

var client = new(http.Client)

// service is the program under test, as a process that can be killed.
type service struct {
	binary, url, bank string
	addr              atomic.Value // of the process that runs now
	process           *exec.Cmd
}

func build(t *testing.T, url, bank string) *service {
	t.Helper()
	s := &service{binary: filepath.Join(t.TempDir(), "payments-river"), url: url, bank: bank}
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", s.binary, ".").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	t.Cleanup(func() { s.kill(t) })
	return s
}

func (s *service) start(t *testing.T) {
	t.Helper()
	s.process = exec.Command(s.binary, "-addr", "127.0.0.1:0", "-postgres-url", s.url, "-bank-url", s.bank) //nolint:noctx // killed by the test
	s.process.Stderr = os.Stderr
	out, err := s.process.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.process.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	addr, ok := strings.CutPrefix(strings.TrimSpace(line), "listening on ")
	if err != nil || !ok {
		t.Fatalf("the service said %q: %v", line, err)
	}
	s.addr.Store(addr)
}

func (s *service) kill(t *testing.T) {
	t.Helper()
	if s.process == nil {
		return
	}
	_ = s.process.Process.Kill() // SIGKILL
	_ = s.process.Wait()
	s.process = nil
}

// sendUntilAnswered repeats an order until it gets a response.
func (s *service) sendUntilAnswered(ctx context.Context, note string) (string, error) {
	for ctx.Err() == nil {
		status, answer, err := s.post(ctx, note)
		switch {
		case err != nil, status == http.StatusConflict, status == http.StatusServiceUnavailable:
			pause(ctx, 10*time.Millisecond)
		case status == http.StatusAccepted:
			return answer, nil
		default:
			return "", fmt.Errorf("status %d: %s", status, answer)
		}
	}
	return "", context.Cause(ctx)
}

func (s *service) post(ctx context.Context, note string) (status int, answer string, err error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	addr, _ := s.addr.Load().(string)
	body := strings.NewReader(fmt.Sprintf(`{"amount":500,"note":%q}`, note))
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+addr+"/orders", body)
	if err != nil {
		return 0, "", err
	}
	r.Header.Set("Idempotency-Key", `"`+note+`"`)
	r.SetBasicAuth("customer", "")
	res, err := client.Do(r)
	if err != nil {
		return 0, "", err
	}
	data, err := io.ReadAll(res.Body)
	return res.StatusCode, string(data), errors.Join(err, res.Body.Close())
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
