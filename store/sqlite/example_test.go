package reprisesqlite_test

import (
	"context"
	"database/sql"
	"fmt"
	"net/http"

	reprisesqlite "github.com/reprise-go/reprise/store/sqlite"
)

func Example() {
	ctx := context.Background()
	db, err := sql.Open("sqlite", "file:shop.db?_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)")
	if err != nil {
		panic(err) // for example: no driver is imported
	}
	if err := reprisesqlite.Migrate(ctx, db, reprisesqlite.Config{}); err != nil {
		panic(err)
	}
	store, err := reprisesqlite.Open(ctx, db, reprisesqlite.Config{})
	if err != nil {
		panic(err)
	}
	_ = store // for protocol.New
}

// A handler writes through the transaction of its attempt. Its writes are there exactly
// when its response is.
func ExampleTx() {
	_ = func(w http.ResponseWriter, r *http.Request) {
		tx, err := reprisesqlite.Tx(r.Context())
		if err != nil {
			http.Error(w, "try again", http.StatusServiceUnavailable)
			return
		}
		if _, err := tx.ExecContext(r.Context(), "UPDATE accounts SET balance = balance - 100 WHERE id = ?", 7); err != nil {
			http.Error(w, "try again", http.StatusServiceUnavailable) // released: everything is rolled back
			return
		}
		w.WriteHeader(http.StatusCreated) // committed, and only then sent
	}
}

// The schema for another migration tool.
func ExampleMigrations() {
	list, err := reprisesqlite.Migrations(reprisesqlite.Config{Table: "payments"})
	if err != nil {
		panic(err)
	}
	for _, m := range list {
		fmt.Println(m.Version, m.Name, len(m.Goose) > 0)
	}
	// Output:
	// 1 0001_records true
}
