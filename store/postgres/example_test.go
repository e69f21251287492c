package reprisepg_test

import (
	"context"
	"fmt"
	"net/http"

	"github.com/jackc/pgx/v5/pgxpool"

	reprisepg "github.com/reprise-go/reprise/store/postgres"
)

func Example() {
	ctx := context.Background()
	pool, err := pgxpool.New(ctx, "postgres://app@db.example.com/shop")
	if err != nil {
		panic(err)
	}
	if err := reprisepg.Migrate(ctx, pool, reprisepg.Config{}); err != nil {
		panic(err)
	}
	store, err := reprisepg.Open(ctx, pool, reprisepg.Config{})
	if err != nil {
		panic(err) // for example: the tables do not exist
	}
	_ = store // for protocol.New
}

// A handler writes through the transaction of its attempt. Its writes are there exactly
// when its response is.
func ExampleTx() {
	_ = func(w http.ResponseWriter, r *http.Request) {
		tx, err := reprisepg.Tx(r.Context())
		if err != nil {
			http.Error(w, "try again", http.StatusServiceUnavailable)
			return
		}
		if _, err := tx.Exec(r.Context(), "UPDATE accounts SET balance = balance - 100 WHERE id = $1", 7); err != nil {
			http.Error(w, "try again", http.StatusServiceUnavailable) // released: everything is rolled back
			return
		}
		w.WriteHeader(http.StatusCreated) // committed, and only then sent
	}
}

// The schema for another migration tool.
func ExampleMigrations() {
	list, err := reprisepg.Migrations(reprisepg.Config{Schema: "shop"})
	if err != nil {
		panic(err)
	}
	for _, m := range list {
		fmt.Println(m.Version, m.Name, len(m.SQL) > 0)
	}
	// Output:
	// 1 0001_records true
}

func ExampleGrants() {
	sql, err := reprisepg.Grants(reprisepg.Config{Schema: "shop"}, "app")
	if err != nil {
		panic(err)
	}
	fmt.Print(sql)
	// Output:
	// GRANT USAGE ON SCHEMA "shop" TO "app";
	// GRANT SELECT, INSERT, UPDATE, DELETE ON "shop"."reprise_records" TO "app";
	// GRANT EXECUTE ON FUNCTION "shop"."reprise_records_claims_v1", "shop"."reprise_records_completes_v1" TO "app";
	// GRANT SELECT ON "shop"."reprise_records_migrations" TO "app";
}
