// Sqlite is a service with a file and no server: transfers between accounts, whose rows
// commit together with the stored response.
//
// Send a transfer twice, also after the process was killed and started again, and look at
// the accounts:
//
//	go run ./examples/sqlite -file "${TMPDIR:-/tmp}/bank.db"
//	curl -i localhost:8080/transfers -H 'Idempotency-Key: t-1' -d '{"from":1,"to":2,"amount":100}'   # twice
//	curl localhost:8080/accounts
//
//run:background until 8080; prints "moved 100 from 1 to 2"
package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	_ "modernc.org/sqlite" // the driver

	reprisehttp "github.com/reprise-go/reprise/adapters/nethttp"
	"github.com/reprise-go/reprise/core/protocol"
	reprisesqlite "github.com/reprise-go/reprise/store/sqlite"
)

func main() {
	if err := start(); err != nil {
		fmt.Fprintln(os.Stderr, "sqlite:", err)
		os.Exit(1)
	}
}

func start() error {
	addr := flag.String("addr", "127.0.0.1:8080", "`address` to listen on")
	file := flag.String("file", "bank.db", "`file` of SQLite, created if it is missing")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return serve(ctx, *addr, *file)
}

const schema = `
CREATE TABLE IF NOT EXISTS accounts (id INTEGER PRIMARY KEY, balance INTEGER NOT NULL CHECK (balance >= 0));
INSERT OR IGNORE INTO accounts VALUES (1, 1000), (2, 0)`

func serve(ctx context.Context, addr, file string) error {
	db, err := sql.Open("sqlite", "file:"+filepath.ToSlash(file)+"?_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)")
	if err != nil {
		return err
	}
	defer db.Close()
	if _, err := db.ExecContext(ctx, schema); err != nil {
		return err
	}
	if err := reprisesqlite.Migrate(ctx, db, reprisesqlite.Config{}); err != nil {
		return err
	}
	store, err := reprisesqlite.OpenTransactional(ctx, db, reprisesqlite.Config{})
	if err != nil {
		return err
	}
	guard, err := protocol.New(store, protocol.Config{Required: true})
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("POST /transfers", reprisehttp.Middleware(guard, reprisehttp.Unscoped)(http.HandlerFunc(transfer)))
	mux.HandleFunc("GET /accounts", func(w http.ResponseWriter, r *http.Request) { accounts(w, r, db) })

	ln, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	fmt.Printf("Serving transfers on http://%s\n", ln.Addr())
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(ln) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	return errors.Join(server.Shutdown(closing), guard.Close(closing))
}

// transfer moves money in the transaction of its attempt. The answer is sent after the
// commit; a failure rolls everything back, and a retry runs again.
func transfer(w http.ResponseWriter, r *http.Request) {
	var order struct{ From, To, Amount int64 }
	if err := json.NewDecoder(r.Body).Decode(&order); err != nil || order.Amount <= 0 {
		http.Error(w, "want from, to and a positive amount", http.StatusBadRequest)
		return
	}
	tx, ok := reprisesqlite.Tx(r.Context())
	if !ok {
		http.Error(w, "no transaction", http.StatusInternalServerError)
		return
	}
	for _, change := range []struct {
		account, by int64
		refusal     string
	}{
		{order.From, -order.Amount, "no account, or not enough money, to take this from"},
		{order.To, order.Amount, "no account to give this to"},
	} {
		done, err := tx.ExecContext(r.Context(), "UPDATE accounts SET balance = balance + ?1 WHERE id = ?2 AND balance + ?1 >= 0", change.by, change.account)
		if err != nil {
			http.Error(w, "not moved", http.StatusServiceUnavailable)
			return
		}
		if rows, err := done.RowsAffected(); err != nil || rows == 0 { // a 4xx is recorded, and its rows are rolled back
			http.Error(w, change.refusal, http.StatusUnprocessableEntity)
			return
		}
	}
	w.WriteHeader(http.StatusCreated)
	fmt.Fprintf(w, "moved %d from %d to %d\n", order.Amount, order.From, order.To)
}

// accounts shows the balances. They can be read while a transfer runs.
func accounts(w http.ResponseWriter, r *http.Request, db *sql.DB) {
	rows, err := db.QueryContext(r.Context(), "SELECT id, balance FROM accounts ORDER BY id")
	if err != nil {
		http.Error(w, "not read", http.StatusServiceUnavailable)
		return
	}
	defer rows.Close()
	for rows.Next() {
		var id, balance int64
		if err := rows.Scan(&id, &balance); err == nil {
			fmt.Fprintf(w, "%d: %d\n", id, balance)
		}
	}
	_ = rows.Err() // the client sees what was read
}
