package main

import (
	"database/sql"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/reprise-go/reprise/examples/internal/program"
	"github.com/reprise-go/reprise/servers"
)

func TestMain(m *testing.M) { program.Main(m, main) }

// TestVoucherIsRedeemedOnce: the first process is killed in its handler, between two
// writes, and the second after its response.
func TestVoucherIsRedeemedOnce(t *testing.T) {
	t.Parallel()
	server := servers.StartMariaDB(t, "innodb-flush-log-at-trx-commit=1")
	dsn := fmt.Sprintf("root@tcp(%s)/test", server.Addr())
	db, err := sql.Open("mysql", fmt.Sprintf("root@tcp(%s)/", server.Addr()))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), "CREATE DATABASE test"); err != nil {
		t.Fatal(err)
	}
	start := func() (*program.Process, string) {
		process := program.Start(t, "-dsn", dsn, "-addr", "127.0.0.1:0")
		base := process.Await(t, `Serving vouchers on (http://[0-9.:]+)\n`)
		return process, base
	}

	process, base := start()
	block, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = block.Rollback() }()
	if _, err := block.ExecContext(t.Context(), "SELECT * FROM test.vouchers FOR UPDATE"); err != nil {
		t.Fatal(err)
	}
	lost := make(chan error, 1)
	go func() {
		_, err := redeemAt(t, base)
		lost <- err
	}()
	until(t, "the handler waits for the voucher", func() bool {
		return number(t, db, "SELECT variable_value FROM information_schema.global_status WHERE variable_name = 'INNODB_ROW_LOCK_CURRENT_WAITS'") == 1
	})
	process.Kill()
	if err := <-lost; err == nil {
		t.Error("the killed process answered")
	}
	if err := block.Rollback(); err != nil {
		t.Fatal(err)
	}

	for life, replayed := range []string{"", "true"} {
		process, base := start()
		var got answer
		until(t, "the retry is answered", func() bool { // refused until the server has rolled back what the killed process wrote
			var err error
			if got, err = redeemAt(t, base); err != nil {
				t.Fatal(err)
			}
			return got.status != http.StatusConflict && got.status != http.StatusServiceUnavailable
		})
		if want := (answer{http.StatusCreated, replayed, "redeemed, 1 left\n"}); got != want {
			t.Errorf("life %d: %+v, want %+v", life, got, want)
		}
		process.Kill()
		if left, redeemed := number(t, db, "SELECT remaining FROM test.vouchers"), number(t, db, "SELECT count(*) FROM test.redemptions"); left != 1 || redeemed != 1 {
			t.Errorf("life %d: %d left after %d redemptions, want 1 and 1", life, left, redeemed)
		}
	}
}

// answer is a response to a client.
type answer struct {
	status         int
	replayed, body string
}

// redeemAt redeems a voucher, always with the same key.
func redeemAt(t *testing.T, base string) (answer, error) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, base+"/vouchers/WELCOME", http.NoBody)
	if err != nil {
		return answer{}, err
	}
	request.Header.Set("Idempotency-Key", "v-1")
	request.Header.Set("X-Customer", "ada")
	got, err := new(http.Client).Do(request)
	if err != nil {
		return answer{}, err
	}
	defer got.Body.Close()
	body, err := io.ReadAll(got.Body)
	return answer{got.StatusCode, got.Header.Get("Idempotent-Replayed"), string(body)}, err
}

func number(t *testing.T, db *sql.DB, query string) (n int) {
	t.Helper()
	if err := db.QueryRowContext(t.Context(), query).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// until polls a condition for a minute at most.
func until(t *testing.T, what string, met func() bool) {
	t.Helper()
	for end := time.After(time.Minute); !met(); {
		select {
		case <-end:
			t.Fatalf("not in a minute: %s", what)
		case <-time.After(10 * time.Millisecond):
		}
	}
}
