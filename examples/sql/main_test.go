package main

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/reprise-go/reprise/servers"
	"github.com/reprise-go/reprise/servers/program"
)

func TestMain(m *testing.M) { program.Main(m, main) }

// What a handler writes through each library is undone with a refusal, which is kept, and
// with a process that is killed in the middle of it. The retry at the next process books
// the transfer, and a retry of that one gets its response.
func TestEachLibraryWritesInTheTransactionOfTheRequest(t *testing.T) {
	t.Parallel()
	for library := range libraries {
		t.Run(library, func(t *testing.T) {
			t.Parallel()
			url := servers.StartPostgres(t, "fsync=on").URL()
			start := func() (p *program.Process, addr string) {
				p = program.Start(t, "-addr", "127.0.0.1:0", "-postgres-url", url, "-library", library)
				addr = p.Await(t, `listening on (\S+)\n`)
				return p, addr
			}
			process, addr := start()
			conn, err := pgx.Connect(t.Context(), url)
			servers.Must(t, err)
			defer conn.Close(context.WithoutCancel(t.Context()))
			for range 2 {
				status, body := post(t, addr, "poor", `{"from":"alice","to":"nobody","amount":5}`)
				if status != http.StatusUnprocessableEntity || !strings.Contains(body, "insufficient funds") {
					t.Fatalf("%d %q", status, body)
				}
			}
			checkLedger(t, conn, 0)

			const transfer = `{"from":"alice","to":"bob","amount":5,"note":"lunch"}`
			tx, err := conn.Begin(t.Context())
			if err == nil {
				_, err = tx.Exec(t.Context(), "UPDATE reprise_example.accounts SET balance = balance WHERE id = 'bob'")
			}
			servers.Must(t, err)
			go post(t, addr, "lunch", transfer) // gets no response
			for waiting := 0; waiting == 0; {
				servers.Must(t, tx.QueryRow(t.Context(), "SELECT count(*) FROM pg_locks WHERE NOT granted").Scan(&waiting))
			}
			process.Kill()
			servers.Must(t, tx.Rollback(t.Context()))
			_, addr = start()
			status, first := post(t, addr, "lunch", transfer)
			for end := time.Now().Add(time.Minute); status == http.StatusConflict && time.Now().Before(end); { // until PostgreSQL has noticed
				status, first = post(t, addr, "lunch", transfer)
			}
			again, second := post(t, addr, "lunch", transfer)
			if status != http.StatusCreated || again != status || second != first {
				t.Errorf("%d %q, and its retry %d %q", status, first, again, second)
			}
			checkLedger(t, conn, 1)
		})
	}
}

// checkLedger wants so many transfers, and the balances that follow from them.
func checkLedger(t *testing.T, conn *pgx.Conn, want int) {
	t.Helper()
	var rows, wrong int
	err := conn.QueryRow(t.Context(), `
		SELECT count(*),
			(SELECT count(*) FROM reprise_example.accounts AS a WHERE balance <> 100000
				+ (SELECT coalesce(sum(amount), 0) FROM reprise_example.transfers WHERE target = a.id)
				- (SELECT coalesce(sum(amount), 0) FROM reprise_example.transfers WHERE source = a.id))
		FROM reprise_example.transfers`).Scan(&rows, &wrong)
	servers.Must(t, err)
	if rows != want || wrong != 0 {
		t.Errorf("the ledger has %d transfers, want %d; %d balances differ from it", rows, want, wrong)
	}
}

var client = new(http.Client)

// post returns the status 0 if there was no response.
func post(t *testing.T, addr, key, body string) (status int, answer string) {
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+addr+"/transfers", strings.NewReader(body))
	if err != nil {
		panic(err)
	}
	r.Header.Set("Idempotency-Key", key)
	res, err := client.Do(r)
	if err != nil {
		return 0, err.Error()
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		return 0, err.Error()
	}
	return res.StatusCode, string(data)
}
