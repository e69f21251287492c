// Sql moves money, on net/http with PostgreSQL: every transfer commits together with the
// response that its retries get. The same transfer is written with each of three
// libraries, which differ in how a handler puts them on the transaction of the
// request; the tests have snippets for sqlx, bun, ent and River.
//
//	GOWORK=off go run -C examples/sql . -postgres-url postgres://localhost/postgres   # with -library gorm or sqlc, too
//	curl -i localhost:8080/transfers -H 'Idempotency-Key: 7c1f' -d '{"from":"alice","to":"bob","amount":5,"note":"lunch"}'
//
//run:background until 8080; needs postgres; prints "HTTP/1.1 201"
package main

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

// order is the body of a client's request.
type order struct {
	From   string `json:"from"`
	To     string `json:"to"`
	Amount int64  `json:"amount"` // in cents
	Note   string `json:"note"`
}

// errFunds says that the source has too little money, or that an account does not exist.
var errFunds = errors.New("insufficient funds, or no such account")

// move books an order within the transaction of the request, which it finds in ctx, and
// returns the number of the transfer. It neither commits nor rolls back.
type move func(ctx context.Context, o order) (transfer int64, err error)

// libraries make a move over the pool of the store.
var libraries = map[string]func(*sql.DB) (move, error){
	"database/sql": func(*sql.DB) (move, error) { return withSQL, nil },
	"gorm":         withGorm,
	"sqlc":         func(*sql.DB) (move, error) { return withSqlc, nil },
}

const connections = 10

var config = reprisepg.Config{Schema: "reprise_example", TxTimeout: 10 * time.Second}

func main() {
	addr := flag.String("addr", "127.0.0.1:8080", "where to listen")
	url := flag.String("postgres-url", "postgres://127.0.0.1/postgres", "the database; the schema reprise_example is made in it")
	library := flag.String("library", "database/sql", "database/sql, gorm or sqlc")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := serve(ctx, *addr, *url, *library)
	stop()
	if err != nil {
		slog.Error("sql", slog.Any("error", err))
		os.Exit(1)
	}
}

// openStore makes the tables of the bank and of its store, and opens the store.
func openStore(ctx context.Context, db *sql.DB) (*reprisepg.Store, error) {
	db.SetMaxOpenConns(connections)
	db.SetMaxIdleConns(connections) // database/sql keeps two otherwise
	_, err := db.ExecContext(ctx, schema)
	if err == nil {
		err = reprisepg.Migrate(ctx, db, config)
	}
	if err != nil {
		return nil, err
	}
	return reprisepg.Open(ctx, db, config)
}

// serve runs the service until ctx ends, and then waits for running requests.
func serve(ctx context.Context, addr, url, library string) error {
	open, known := libraries[library]
	if !known {
		return fmt.Errorf("there is no library %q", library)
	}
	db, err := sql.Open("pgx", url)
	if err != nil {
		return err
	}
	defer db.Close()
	store, err := openStore(ctx, db)
	if err != nil {
		return fmt.Errorf("%w; the program needs PostgreSQL 15 or newer at -postgres-url (Debian and Ubuntu: apt-get install postgresql)", err)
	}
	book, err := open(db)
	if err != nil {
		return err
	}
	guard, err := protocol.New(store, protocol.Config{Required: true, Transactional: true})
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("POST /transfers", reprisehttp.Middleware(guard, customer)(transfers(book)))
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
func transfers(book move) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var o order
		if err := json.NewDecoder(r.Body).Decode(&o); err != nil || o.Amount <= 0 || o.From == o.To {
			http.Error(w, "want two accounts and a positive amount", http.StatusBadRequest)
			return
		}
		id, err := book(r.Context(), o)
		switch {
		case errors.Is(err, errFunds):
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
