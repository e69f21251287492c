// Mysql redeems vouchers over MariaDB or MySQL: the rows of a redemption commit together
// with the response that its retries get, or not at all.
//
// Redeem one of two vouchers twice with one key, also after the process was killed and
// started again:
//
//	MYSQL_DSN='root@tcp(127.0.0.1:3306)/test' go run ./examples/mysql
//	curl -i -X POST -H 'X-Customer: ada' localhost:8080/vouchers/WELCOME -H 'Idempotency-Key: v-1'   # twice
//
//run:background until 8080; needs mariadb; prints "1 left"
package main

import (
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/go-sql-driver/mysql"

	reprisehttp "github.com/reprise-go/reprise/adapters/nethttp"
	"github.com/reprise-go/reprise/core/protocol"
	reprisemysql "github.com/reprise-go/reprise/store/mysql"
)

func main() {
	addr := flag.String("addr", "127.0.0.1:8080", "`address` to listen on")
	dsn := flag.String("dsn", os.Getenv("MYSQL_DSN"), "`data source` of the driver")
	flag.Parse()
	if err := serve(*addr, *dsn); err != nil {
		fmt.Fprintln(os.Stderr, "mysql:", err)
		os.Exit(1)
	}
}

func serve(addr, dsn string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	config, err := mysql.ParseDSN(dsn)
	if err != nil {
		return err
	}
	config.InterpolateParams = true // one round trip per statement
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return err
	}
	db := sql.OpenDB(connector)
	defer db.Close()
	db.SetMaxOpenConns(16) // a handler holds one while it runs
	db.SetMaxIdleConns(16)
	store, err := openStore(ctx, db)
	if err != nil {
		return fmt.Errorf("%w; the program needs MariaDB 10.6 or newer, or MySQL 8.0 or newer, at MYSQL_DSN (Debian and Ubuntu: apt-get install mariadb-server)", err)
	}
	guard, err := protocol.New(store, protocol.Config{Required: true})
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("POST /vouchers/{code}", reprisehttp.Middleware(guard, customer)(http.HandlerFunc(redeem)))
	ln, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	fmt.Printf("Serving vouchers on http://%s\n", ln.Addr())
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
	return errors.Join(server.Shutdown(closing), guard.Close(closing)) // first the requests, then their background work
}

// openStore creates the tables and opens the store, which refuses a server on which a
// guarantee does not hold.
func openStore(ctx context.Context, db *sql.DB) (*reprisemysql.TransactionalStore, error) {
	for _, statement := range []string{
		"CREATE TABLE IF NOT EXISTS vouchers (code VARCHAR(20) PRIMARY KEY, remaining INT NOT NULL) ENGINE=InnoDB",
		"CREATE TABLE IF NOT EXISTS redemptions (id BIGINT AUTO_INCREMENT PRIMARY KEY, code VARCHAR(20) NOT NULL, customer VARCHAR(80) NOT NULL) ENGINE=InnoDB",
		"INSERT IGNORE INTO vouchers VALUES ('WELCOME', 2)",
	} {
		if _, err := db.ExecContext(ctx, statement); err != nil {
			return nil, err
		}
	}
	if err := reprisemysql.Migrate(ctx, db, reprisemysql.Config{}); err != nil {
		return nil, err
	}
	return reprisemysql.OpenTransactional(ctx, db, reprisemysql.Config{})
}

// customer separates the keys of customers. A real service authenticates them.
func customer(r *http.Request) (string, error) { return r.Header.Get("X-Customer"), nil }

// redeem takes a voucher in the transaction of its attempt. The response is sent after
// the commit; a response of 400 or more undoes what was written.
func redeem(w http.ResponseWriter, r *http.Request) {
	remaining, err := take(r.Context(), r.PathValue("code"), r.Header.Get("X-Customer"))
	switch {
	case errors.Is(err, sql.ErrNoRows):
		http.Error(w, "no such voucher is left", http.StatusGone) // kept, and replayed
	case err != nil:
		http.Error(w, "not redeemed", http.StatusServiceUnavailable) // not kept: a retry runs again
	default:
		w.WriteHeader(http.StatusCreated)
		fmt.Fprintf(w, "redeemed, %d left\n", remaining)
	}
}

// take records the redemption of a voucher, and returns how many vouchers of this code
// remain.
func take(ctx context.Context, code, customer string) (remaining int, err error) {
	tx, ok := reprisemysql.Tx(ctx)
	if !ok {
		return 0, errors.New("the request has no transaction")
	}
	if _, err := tx.ExecContext(ctx, "INSERT INTO redemptions (code, customer) VALUES (?, ?)", code, customer); err != nil {
		return 0, err
	}
	if err := tx.QueryRowContext(ctx, "SELECT remaining FROM vouchers WHERE code = ? AND remaining > 0 FOR UPDATE", code).Scan(&remaining); err != nil {
		return 0, err
	}
	_, err = tx.ExecContext(ctx, "UPDATE vouchers SET remaining = remaining - 1 WHERE code = ?", code)
	return remaining - 1, err
}
