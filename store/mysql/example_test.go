package reprisemysql_test

import (
	"context"
	"database/sql"
	"fmt"
	"net/http"

	reprisemysql "github.com/reprise-go/reprise/store/mysql"
)

func Example() {
	ctx := context.Background()
	db, err := sql.Open("mysql", "shop:secret@tcp(10.0.0.5:3306)/shop?interpolateParams=true")
	if err != nil {
		panic(err) // for example: no driver is imported
	}
	if err := reprisemysql.Migrate(ctx, db, reprisemysql.Config{}); err != nil {
		panic(err)
	}
	store, err := reprisemysql.Open(ctx, db, reprisemysql.Config{})
	if err != nil {
		panic(err)
	}
	_ = store // for protocol.New
}

// A handler writes through the transaction of its attempt. Its writes are there exactly
// when its response is.
func ExampleTx() {
	_ = func(w http.ResponseWriter, r *http.Request) {
		tx, err := reprisemysql.Tx(r.Context())
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
	list, err := reprisemysql.Migrations(reprisemysql.Config{Table: "payments"})
	if err != nil {
		panic(err)
	}
	for _, m := range list {
		fmt.Println(m.Version, m.Name, len(m.Goose) > 0)
	}
	// Output:
	// 1 0001_records true
}
