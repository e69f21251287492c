package postgres

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/servers"
	reprisepg "github.com/reprise-go/reprise/store/postgres"
)

// TestPostgresOpens: on a server that keeps its promises every constructor that checks
// refuses an incomplete schema, names the missing part, and returns a store once it
// exists. Warnings go to the log.
func TestPostgresOpens(t *testing.T) {
	t.Parallel()
	server := servers.StartPostgres(t, "fsync=on")
	pool := labtest.NewPool(t, server.URL(), labtest.MaxConns(5))
	db := labtest.NewDB(t, server.URL(), labtest.MaxConns(5))
	var log pgLog
	c := reprisepg.Config{Schema: "opened", Logger: slog.New(slog.NewTextHandler(&log, nil))}
	open := map[string]func(reprisepg.Config) (store.Store, error){
		"Open":    func(c reprisepg.Config) (store.Store, error) { return reprisepg.Open(t.Context(), pool, c) },
		"OpenSQL": func(c reprisepg.Config) (store.Store, error) { return reprisepg.OpenSQL(t.Context(), db, c) },
	}
	for name, constructor := range open {
		_, err := constructor(c)
		labtest.Want(t, name+" without a schema", err, store.ErrMisconfigured)
		if !strings.Contains(err.Error(), "does not exist or has no version; run Migrate") {
			t.Errorf("%s without a schema: %v", name, err)
		}
		_, err = constructor(reprisepg.Config{Schema: "a b"})
		labtest.Want(t, name+" with a bad name", err, store.ErrInvalid)
	}
	unopened, err := reprisepg.New(pool, c)
	labtest.Must(t, err)
	_, err = unopened.Claim(t.Context(), labtest.NewClaim())
	labtest.Want(t, "claim without a schema", err, store.ErrMisconfigured)
	if remedy := "Migrate, or apply what "; !strings.Contains(err.Error(), remedy) || !log.contains("run Migrate") {
		t.Errorf("neither the log nor the error of a claim may leave it out to migrate: %v", err)
	}
	labtest.Want(t, "MigrateSQL with a bad name", reprisepg.MigrateSQL(t.Context(), db, reprisepg.Config{Schema: "a b"}), store.ErrInvalid)
	labtest.Must(t, reprisepg.MigrateSQL(t.Context(), db, c))
	for name, constructor := range open {
		st, err := constructor(c)
		labtest.Want(t, name, err, nil)
		r := labtest.Claimed(t, st)
		labtest.Want(t, name+": complete", labtest.Complete(t, st, r, "answer"), nil)
		labtest.WantClaim(t, st, labtest.Rival(r), store.Completed)
	}
	if n := db.Stats().InUse; n != 0 {
		t.Errorf("%d connections are still out", n)
	}

	_, err = reprisepg.Open(t.Context(), labtest.NewPool(t, server.URL(), labtest.MaxConns(1)), c)
	labtest.Must(t, err)

	ended, cancel := context.WithCancel(t.Context())
	cancel()
	labtest.Want(t, "MigrateSQL too late", reprisepg.MigrateSQL(ended, db, c), store.ErrUnavailable)
	_, err = reprisepg.OpenSQL(ended, db, c)
	labtest.Want(t, "OpenSQL too late", err, store.ErrUnavailable)
	if _, err := reprisepg.SchemaVersion(ended, pool, c); err == nil || errors.Is(err, store.ErrInvalid) {
		t.Errorf("SchemaVersion too late: %v", err)
	}
}
