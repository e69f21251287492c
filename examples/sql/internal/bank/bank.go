// Package bank has the common parts of the programs in this example: the database, the
// store, the engine, the routes, and the transfer.
package bank

import (
	"context"
	"database/sql"
	_ "embed"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"

	reprisehttp "github.com/reprise-go/reprise/adapters/nethttp"
	"github.com/reprise-go/reprise/core/protocol"
	reprisepg "github.com/reprise-go/reprise/store/postgres"
)

//go:embed schema.sql
var schema string

// Order is the body of a client's request.
type Order struct {
	From   string `json:"from"`
	To     string `json:"to"`
	Amount int64  `json:"amount"` // in cents
	Note   string `json:"note"`
}

// ErrFunds says that the source has too little money, or that an account does not exist.
var ErrFunds = errors.New("insufficient funds, or no such account")

// Move books an order within the transaction of the request, which it finds in ctx, and
// returns the number of the transfer. It neither commits nor rolls back.
type Move func(ctx context.Context, o Order) (transfer int64, err error)

const connections = 10

var config = reprisepg.Config{Schema: "reprise_example", TxTimeout: 10 * time.Second}

// Main serves transfers on a *sql.DB until the process is told to stop.
func Main(move Move) { MainOver(func(*sql.DB) (Move, error) { return move, nil }) }

// MainOver is [Main] for a library that has a handle over the pool.
func MainOver(open func(*sql.DB) (Move, error)) {
	addr := flag.String("addr", "127.0.0.1:8080", "where to listen")
	url := flag.String("postgres-url", "postgres://127.0.0.1/postgres", "the database; the schema reprise_example is made in it")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := serve(ctx, *addr, *url, open)
	stop()
	if err != nil {
		slog.Error("bank", slog.Any("error", err))
		os.Exit(1)
	}
}

// Open makes the tables of the bank and of its store, and opens the store.
func Open(ctx context.Context, db *sql.DB) (*reprisepg.TransactionalStore, error) {
	db.SetMaxOpenConns(connections)
	db.SetMaxIdleConns(connections) // database/sql keeps two otherwise
	_, err := db.ExecContext(ctx, schema)
	if err == nil {
		err = reprisepg.MigrateSQL(ctx, db, config)
	}
	if err != nil {
		return nil, err
	}
	return reprisepg.OpenTransactionalSQL(ctx, db, config)
}

// serve runs the service until ctx ends, and then waits for running requests.
func serve(ctx context.Context, addr, url string, open func(*sql.DB) (Move, error)) error {
	db, err := sql.Open("pgx", url)
	if err != nil {
		return err
	}
	defer db.Close()
	store, err := Open(ctx, db)
	if err != nil {
		return fmt.Errorf("%w; the program needs PostgreSQL 15 or newer at -postgres-url (Debian and Ubuntu: apt-get install postgresql)", err)
	}
	move, err := open(db)
	if err != nil {
		return err
	}
	guard, err := protocol.New(store, protocol.Config{Required: true})
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("POST /transfers", reprisehttp.Middleware(guard, customer)(transfers(move)))
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	fmt.Println("listening on", listener.Addr())

	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), 15*time.Second)
	defer cancel()
	return errors.Join(server.Shutdown(closing), guard.Close(closing)) // first the requests, then their background work
}

// customer names the owner of a key. A real service takes it from the credentials that it
// checked.
func customer(r *http.Request) (string, error) {
	if user, _, ok := r.BasicAuth(); ok {
		return user, nil
	}
	return "anonymous", nil
}

// transfers handles a transfer. A 4xx is kept as a response, and its rows are undone; a
// 5xx is forgotten, so that a retry runs again.
func transfers(move Move) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var o Order
		if err := json.NewDecoder(r.Body).Decode(&o); err != nil || o.Amount <= 0 || o.From == o.To {
			http.Error(w, "want two accounts and a positive amount", http.StatusBadRequest)
			return
		}
		id, err := move(r.Context(), o)
		switch {
		case errors.Is(err, ErrFunds):
			http.Error(w, err.Error(), http.StatusUnprocessableEntity)
		case err != nil:
			slog.ErrorContext(r.Context(), "transfer", slog.Any("error", err))
			http.Error(w, "try again", http.StatusServiceUnavailable)
		default:
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusCreated)
			_ = json.NewEncoder(w).Encode(map[string]int64{"transfer": id})
		}
	})
}

// Tx returns the transaction of the request.
func Tx(ctx context.Context) (*sql.Tx, error) {
	tx, ok := reprisepg.SQLTx(ctx)
	if !ok {
		return nil, errors.New("the request has no transaction")
	}
	return tx, nil
}

// The steps of a transfer. Both accounts are locked in one order, so that two transfers
// in opposite directions cannot block each other.
const (
	Lock   = `SELECT id FROM reprise_example.accounts WHERE id IN ($1, $2) ORDER BY id FOR NO KEY UPDATE`
	Take   = `UPDATE reprise_example.accounts SET balance = balance - $2 WHERE id = $1 AND balance >= $2`
	Give   = `UPDATE reprise_example.accounts SET balance = balance + $2 WHERE id = $1`
	Record = `INSERT INTO reprise_example.transfers (source, target, amount, note) VALUES ($1, $2, $3, $4) RETURNING id`
)
