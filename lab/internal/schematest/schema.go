// Package schematest has the tests of the schema that stores in SQL share.
package schematest

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/pressly/goose/v3"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"
)

// Schema is the schema of a store in a database of SQL.
type Schema struct {
	Pool    func() *sql.DB // over a database without the tables
	Dialect goose.Dialect
	Goose   []string // the files of each step, of this release

	New     func(*sql.DB, *slog.Logger) (labtest.TransactorStore, error)
	Open    func(context.Context, *sql.DB, *slog.Logger) error
	Migrate func(context.Context, *sql.DB, *slog.Logger) error
	Version func(context.Context, *sql.DB) (int, error)
}

// NextRelease makes st a store of a release with another step, and returns its Migrate.
func NextRelease(st any, up, down []string) (migrate func(context.Context) error) {
	field := reflect.ValueOf(st).Elem().FieldByName("table")
	table := reflect.NewAt(field.Type(), field.Addr().UnsafePointer()).Elem()
	dialect := table.Elem().FieldByName("Dialect")
	next := reflect.New(dialect.Type().Elem())
	next.Elem().Set(dialect.Elem())
	steps := next.Elem().FieldByName("Steps")
	step := reflect.New(steps.Type().Elem()).Elem()
	step.FieldByName("Name").SetString("next")
	step.FieldByName("Up").Set(reflect.ValueOf(up))
	step.FieldByName("Down").Set(reflect.ValueOf(down))
	steps.Set(reflect.Append(steps.Slice3(0, steps.Len(), steps.Len()), step))
	dialect.Set(next)
	return table.MethodByName("Migrate").Interface().(func(context.Context) error) //nolint:forcetypeassert // it is
}

// next returns a store of the next release, whose table has another column.
func (s *Schema) next(t *testing.T) (st labtest.TransactorStore, migrate func(context.Context) error) {
	t.Helper()
	st, err := s.New(s.Pool(), nil)
	labtest.Must(t, err)
	return st, NextRelease(st, []string{"ALTER TABLE {records} ADD COLUMN later INTEGER NOT NULL DEFAULT 7"}, []string{"ALTER TABLE {records} DROP COLUMN later"})
}

// WantFinding demands that Check finds the schema to be of a severity, and says so; an
// empty text stands for no finding.
func WantFinding(t *testing.T, what string, st store.Checker, severity store.Severity, text string) {
	t.Helper()
	list, err := st.Check(t.Context())
	labtest.Must(t, err)
	for _, f := range list {
		if f.Code == "schema" {
			if text == "" || f.Severity != severity || !strings.Contains(f.Detail, text) {
				t.Errorf("%s: Check finds %+v, want %q", what, f, text)
			}
			return
		}
	}
	if text != "" {
		t.Errorf("%s: Check does not find that %q", what, text)
	}
}

// AtOnce is a test: twenty processes migrate an empty database.
func (s *Schema) AtOnce(t *testing.T) {
	t.Helper()
	var all sync.WaitGroup
	for range 20 {
		db := s.Pool()
		all.Go(func() {
			if err := s.Migrate(t.Context(), db, nil); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	db := s.Pool()
	labtest.Must(t, s.Open(t.Context(), db, nil))
	if v, err := s.Version(t.Context(), db); v != len(s.Goose) || err != nil {
		t.Errorf("version %d, %v; want %d", v, err, len(s.Goose))
	}
}

// Rollout is a test: the next release adds a column while this one is in use, which goes
// on, may restart, and leaves the schema as it is.
func (s *Schema) Rollout(t *testing.T, tx func(context.Context) (*sql.Tx, error)) {
	t.Helper()
	db := s.Pool()
	old, err := s.New(db, nil)
	labtest.Must(t, err)
	WantFinding(t, "no table", old, store.Unsafe, "run Migrate")
	labtest.Must(t, s.Migrate(t.Context(), db, nil))
	WantFinding(t, "this release", old, 0, "")
	next, migrate := s.next(t)
	WantFinding(t, "an older table", next, store.Unsafe, fmt.Sprintf("has version %d and this release needs %d; run Migrate", len(s.Goose), len(s.Goose)+1))

	// A handler that began before is completed on the newer table, and other calls go on.
	handler, r := labtest.NewTxStore(old), newClaim()
	_, err = handler.Claim(t.Context(), r)
	labtest.Must(t, err)
	_, err = tx(handler.Bind(t.Context(), r.ID, r.Owner))
	labtest.Must(t, err)
	var (
		workers sync.WaitGroup
		served  atomic.Int64
		stop    = make(chan struct{})
		done    = make(chan error, 1)
	)
	for range 4 {
		workers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if err := life(t.Context(), old); err != nil {
					t.Error(err)
					return
				}
				served.Add(1)
			}
		})
	}
	go func() { done <- migrate(t.Context()) }()
	more := func(what string) {
		t.Helper()
		before := served.Load()
		labtest.Eventually(t, what, func() bool { return t.Failed() || served.Load() > before+20 })
	}
	if s.Dialect != goose.DialectSQLite3 { // whose one writer is the handler
		labtest.Must(t, <-done)
		done <- nil
	}
	labtest.Must(t, handler.Complete(t.Context(), store.CompleteRequest{ID: r.ID, Owner: r.Owner, Policy: r.Policy, Payload: []byte("answer")}))
	labtest.Must(t, <-done)
	more("operations of this release on the newer table")
	close(stop)
	workers.Wait()

	WantFinding(t, "the next release", next, 0, "")
	labtest.Must(t, life(t.Context(), next))
	var later int
	if err := db.QueryRowContext(t.Context(), "SELECT MIN(later) FROM reprise_records").Scan(&later); err != nil || later != 7 {
		t.Errorf("the new column is %d, %v", later, err)
	}
	newer := fmt.Sprintf("version %d, newer than the %d", len(s.Goose)+1, len(s.Goose))
	WantFinding(t, "a newer table", old, store.Warning, newer)
	for what, call := range map[string]func(context.Context, *sql.DB, *slog.Logger) error{"Migrate": s.Migrate, "Open": s.Open} {
		var log bytes.Buffer
		if err := call(t.Context(), s.Pool(), slog.New(slog.NewTextHandler(&log, nil))); err != nil || !strings.Contains(log.String(), newer) {
			t.Errorf("%s over a newer table: %v, logged %s", what, err, &log)
		}
	}
	if v, err := s.Version(t.Context(), db); v != len(s.Goose)+1 || err != nil {
		t.Errorf("version %d, %v", v, err)
	}

	// A newer table that this release cannot use.
	labtest.Exec(t, db, "ALTER TABLE reprise_records DROP COLUMN payload")
	WantFinding(t, "without a column", old, store.Unsafe, "which Migrate does not mend")
	labtest.Want(t, "Migrate without a column", s.Migrate(t.Context(), db, nil), store.ErrMisconfigured)
}

// newClaim is a claim of a new operation.
func newClaim() store.ClaimRequest {
	r := store.ClaimRequest{Owner: store.NewOwner(), Lease: time.Hour, Policy: store.Policy{Retention: time.Hour}}
	copy(r.ID[:], r.Owner[:])
	return r
}

// life claims, completes and replays an operation.
func life(ctx context.Context, st store.Store) error {
	r := newClaim()
	got, err := st.Claim(ctx, r)
	if err == nil && got.Outcome == store.Claimed {
		err = st.Complete(ctx, store.CompleteRequest{ID: r.ID, Owner: r.Owner, Policy: r.Policy, Payload: []byte("answer"), Attempt: got.Attempt, Fence: got.Fence})
	}
	if err == nil {
		r.Owner = store.NewOwner()
		got, err = st.Claim(ctx, r)
	}
	if err == nil && got.Outcome != store.Completed {
		err = errors.New(got.Outcome.String())
	}
	return err
}

// AnotherTool is a test: goose applies the files in both directions, and Migrate knows
// it.
func (s *Schema) AnotherTool(t *testing.T) {
	t.Helper()
	db := s.Pool()
	files := fstest.MapFS{}
	for i, file := range s.Goose {
		files[fmt.Sprintf("%04d_step.sql", i+1)] = &fstest.MapFile{Data: []byte(file)}
	}
	provider, err := goose.NewProvider(s.Dialect, db, files)
	labtest.Must(t, err)
	for range 2 {
		_, err = provider.Up(t.Context())
		labtest.Must(t, err)
		labtest.Must(t, s.Migrate(t.Context(), db, nil))
		labtest.Must(t, s.Open(t.Context(), db, nil))
		_, err = provider.DownTo(t.Context(), 0)
		labtest.Must(t, err)
		for _, query := range []string{"SELECT * FROM reprise_records", "SELECT * FROM reprise_records_migrations"} {
			if _, err := db.ExecContext(t.Context(), query); err == nil {
				t.Errorf("a table is left: %s", query)
			}
		}
		if v, err := s.Version(t.Context(), db); v != 0 || err != nil {
			t.Errorf("version %d, %v; want 0", v, err)
		}
	}
}

// Foreign is a test: a table of another program is not taken over, and the advice for it
// helps.
func (s *Schema) Foreign(t *testing.T) {
	t.Helper()
	db := s.Pool()
	labtest.Exec(t, db, "CREATE TABLE reprise_records (id INTEGER, due_at INTEGER)")
	for range 2 {
		err := s.Migrate(t.Context(), db, nil)
		if !errors.Is(err, store.ErrMisconfigured) || !strings.Contains(err.Error(), "does not mend") || !strings.Contains(err.Error(), "rename it, drop reprise_records_migrations and run Migrate") {
			t.Errorf("Migrate: %v", err)
		}
	}
	labtest.Exec(t, db, "ALTER TABLE reprise_records RENAME TO theirs")
	labtest.Exec(t, db, "DROP TABLE IF EXISTS reprise_records_migrations")
	labtest.Must(t, s.Migrate(t.Context(), db, nil))
	labtest.Must(t, s.Open(t.Context(), db, nil))
}
