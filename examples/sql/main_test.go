package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/reprise-go/reprise/servers"
	"github.com/reprise-go/reprise/servers/program"
)

func TestMain(m *testing.M) { program.Main(m, main) }

// The program is killed again and again, under clients that retry until they have a
// response. Then each transfer is in the ledger once, every retry got the first response,
// and the balances agree with the ledger.
func TestKilledAtRandomTheLedgerHasEachTransferOnce(t *testing.T) {
	t.Parallel()
	for library := range libraries {
		t.Run(library, func(t *testing.T) {
			// One after the other: each of them keeps the machine busy.
			s := &service{library: library, url: servers.StartPostgres(t, "fsync=on").URL()}
			s.start(t)
			s.keepsA4xx(t)
			transfers := s.survives(t, 8)
			s.checkLedger(t, transfers)
		})
	}
}

// service is the program under test.
type service struct {
	library, url string
	addr         atomic.Value // of the process that runs now
	process      *program.Process
}

func (s *service) start(t *testing.T) {
	t.Helper()
	s.process = program.Start(t, "-addr", "127.0.0.1:0", "-postgres-url", s.url, "-library", s.library)
	s.addr.Store(s.process.Await(t, `listening on (\S+)\n`))
}

// survives kills the service while clients send transfers, and returns how many transfers
// were answered.
func (s *service) survives(t *testing.T, kills int64) (transfers int) {
	t.Helper()
	work, stop := context.WithTimeout(t.Context(), 3*time.Minute)
	defer stop()
	var answered, killed atomic.Int64
	var wg sync.WaitGroup
	for c := range 4 {
		wg.Go(func() {
			for n := 0; killed.Load() < kills; n++ {
				note, amount := fmt.Sprintf("transfer %d of client %d", n, c), 1+(n+c)%7
				first, err := s.sendUntilAnswered(work, note, amount)
				if err != nil {
					t.Errorf("%s: %v", note, err)
					return
				}
				again, err := s.sendUntilAnswered(work, note, amount)
				if err != nil || again != first {
					t.Errorf("%s: the retry got %q (%v), the first answer was %q", note, again, err, first)
				}
				answered.Add(1)
			}
		})
	}
	for killed.Load() < kills && work.Err() == nil {
		pause(work, time.Duration(50+rand.IntN(150))*time.Millisecond)
		s.process.Kill()
		s.start(t)
		killed.Add(1)
	}
	wg.Wait()
	t.Logf("%d transfers, %d kills", answered.Load(), killed.Load())
	if answered.Load() == 0 {
		t.Error("no transfer was answered, so the kills show nothing")
	}
	return int(answered.Load())
}

// keepsA4xx shows that a refusal is kept and that its rows are undone: the ledger has no
// trace of it.
func (s *service) keepsA4xx(t *testing.T) {
	t.Helper()
	for range 2 {
		status, body, err := s.post(t.Context(), "poor", `{"from":"alice","to":"nobody","amount":5}`)
		if err != nil || status != http.StatusUnprocessableEntity || !strings.Contains(body, "insufficient funds") {
			t.Fatalf("%d %q %v", status, body, err)
		}
	}
	s.checkLedger(t, 0)
}

func (s *service) checkLedger(t *testing.T, want int) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), s.url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	var rows, notes, wrong int
	err = conn.QueryRow(t.Context(), `
		SELECT count(*), count(DISTINCT note),
			(SELECT count(*) FROM reprise_example.accounts AS a WHERE balance <> 100000
				+ (SELECT coalesce(sum(amount), 0) FROM reprise_example.transfers WHERE target = a.id)
				- (SELECT coalesce(sum(amount), 0) FROM reprise_example.transfers WHERE source = a.id))
		FROM reprise_example.transfers`).Scan(&rows, &notes, &wrong)
	if err != nil {
		t.Fatal(err)
	}
	if rows != want || notes != want || wrong != 0 {
		t.Errorf("the ledger has %d rows for %d transfers, want %d of each; %d balances differ from it", rows, notes, want, wrong)
	}
}

// sendUntilAnswered repeats a transfer until it gets a response, as a client must that
// needs to know.
func (s *service) sendUntilAnswered(ctx context.Context, note string, amount int) (string, error) {
	body, err := json.Marshal(order{From: "alice", To: "bob", Amount: int64(amount), Note: note})
	if err != nil {
		return "", err
	}
	for ctx.Err() == nil {
		status, answer, err := s.post(ctx, note, string(body))
		switch {
		case err != nil, status == http.StatusConflict, status == http.StatusServiceUnavailable:
			pause(ctx, 10*time.Millisecond)
		case status == http.StatusCreated:
			return answer, nil
		default:
			return "", fmt.Errorf("status %d: %s", status, answer)
		}
	}
	return "", context.Cause(ctx)
}

func (s *service) post(ctx context.Context, key, body string) (status int, answer string, err error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	addr, _ := s.addr.Load().(string)
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+addr+"/transfers", strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	r.Header.Set("Idempotency-Key", `"`+key+`"`)
	r.SetBasicAuth("customer", "")
	res, err := client.Do(r)
	if err != nil {
		return 0, "", err
	}
	data, err := io.ReadAll(res.Body)
	return res.StatusCode, string(data), errors.Join(err, res.Body.Close())
}

var client = new(http.Client)

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
