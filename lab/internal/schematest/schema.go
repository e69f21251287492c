// Package schematest has the tests of the schema that stores in SQL share.
package schematest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"

	"github.com/pressly/goose/v3"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"
)

// Schema is the schema of a store in a database of SQL.
type Schema struct {
	Pool       func() *sql.DB // over a database without the tables
	Dialect    goose.Dialect
	Migrations []store.Migration // of this release

	New     func(*sql.DB, *slog.Logger) (labtest.TransactorStore, error)
	Open    func(context.Context, *sql.DB, *slog.Logger) error
	Migrate func(context.Context, *sql.DB, *slog.Logger) error
	Version func(context.Context, *sql.DB) (int, error)
}

// Of returns the schema of a store, whose package has these functions. The caller sets
// its Pool and its Dialect.
func Of[C any, S labtest.TransactorStore](
	t *testing.T, config func(*slog.Logger) C, migrations func(C) ([]store.Migration, error),
	construct func(*sql.DB, C) (S, error), open func(context.Context, *sql.DB, C) (S, error),
	migrate func(context.Context, *sql.DB, C) error, version func(context.Context, *sql.DB, C) (int, error),
) *Schema {
	t.Helper()
	list, err := migrations(config(nil))
	labtest.Must(t, err)
	return &Schema{
		Migrations: list,
		New:        func(db *sql.DB, log *slog.Logger) (labtest.TransactorStore, error) { return construct(db, config(log)) },
		Open: func(ctx context.Context, db *sql.DB, log *slog.Logger) error {
			_, err := open(ctx, db, config(log))
			return err
		},
		Migrate: func(ctx context.Context, db *sql.DB, log *slog.Logger) error { return migrate(ctx, db, config(log)) },
		Version: func(ctx context.Context, db *sql.DB) (int, error) { return version(ctx, db, config(nil)) },
	}
}

// Run runs the tests of a schema, each over a new one.
func Run(t *testing.T, open func(*testing.T) *Schema, tx func(context.Context) (*sql.Tx, error), digests ...string) {
	t.Helper()
	for name, test := range map[string]func(*Schema, *testing.T){
		"an applied migration never changes": func(s *Schema, t *testing.T) { t.Helper(); NeverChange(t, s.Migrations, digests...) },
		"many migrate at once":               (*Schema).AtOnce, "another tool migrates": (*Schema).AnotherTool,
		"a table of another program is refused":         (*Schema).Foreign,
		"the next release migrates while this one runs": func(s *Schema, t *testing.T) { t.Helper(); s.Rollout(t, tx) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(open(t), t)
		})
	}
}

// NeverChange is a test: an applied migration stays unchanged; a change is another
// migration.
func NeverChange(t *testing.T, list []store.Migration, digests ...string) {
	t.Helper()
	if len(list) != len(digests) {
		t.Fatalf("%d migrations and %d digests", len(list), len(digests))
	}
	for i, m := range list {
		if sum := sha256.Sum256([]byte(m.SQL + m.Down)); hex.EncodeToString(sum[:]) != digests[i] {
			t.Errorf("migration %s has the digest %x", m.Name, sum)
		}
		if strings.ContainsAny(m.SQL+m.Down, "{}") {
			t.Errorf("migration %s has a placeholder that is not filled", m.Name)
		}
	}
}

// NextRelease makes st a store of a release with another step, and returns its Migrate.
func NextRelease(st any, statements ...string) (migrate func(context.Context) error) {
	table := reflect.ValueOf(st).Elem().FieldByName("Store").Elem()
	dialect := table.Elem().FieldByName("Dialect")
	next := reflect.New(dialect.Type().Elem())
	next.Elem().Set(dialect.Elem())
	steps := next.Elem().FieldByName("Steps")
	step := reflect.New(steps.Type().Elem()).Elem()
	step.FieldByName("Name").SetString("next")
	step.FieldByName("Up").Set(reflect.ValueOf(statements))
	steps.Set(reflect.Append(steps.Slice3(0, steps.Len(), steps.Len()), step))
	dialect.Set(next)
	return table.MethodByName("Migrate").Interface().(func(context.Context) error) //nolint:forcetypeassert // it is
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
	s.wantVersion(t, db, len(s.Migrations))
}

func (s *Schema) wantVersion(t *testing.T, db *sql.DB, want int) {
	t.Helper()
	if v, err := s.Version(t.Context(), db); v != want || err != nil {
		t.Errorf("version %d, %v; want %d", v, err, want)
	}
}

// Rollout is a test: the next release adds a column while this one is in use, which goes
// on, may restart, and leaves the schema as it is; and the column is taken back.
func (s *Schema) Rollout(t *testing.T, tx func(context.Context) (*sql.Tx, error)) {
	t.Helper()
	db, known := s.Pool(), len(s.Migrations)
	old, err := s.New(db, nil)
	labtest.Must(t, err)
	WantFinding(t, "no table", old, store.Unsafe, "run Migrate")
	var log bytes.Buffer
	if err := s.Migrate(t.Context(), db, slog.New(slog.NewTextHandler(&log, nil))); err != nil || log.Len() > 0 {
		t.Errorf("Migrate: %v, logged %s", err, &log)
	}
	WantFinding(t, "this release", old, 0, "")
	next, err := s.New(s.Pool(), nil)
	labtest.Must(t, err)
	migrate := NextRelease(next, "ALTER TABLE {records} ADD COLUMN later INTEGER NOT NULL DEFAULT 7")
	WantFinding(t, "an older table", next, store.Unsafe, fmt.Sprintf("has version %d and this release needs %d; run Migrate", known, known+1))

	var (
		workers sync.WaitGroup
		served  atomic.Int64
		stop    = make(chan struct{})
	)
	for range 12 { // so many that a store combines their calls
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
	// A handler that began before a change is completed after it, and other calls go on.
	during := func(what string, change func() error) {
		t.Helper()
		handler, r := labtest.NewTxStore(old), labtest.NewClaim()
		_, err := handler.Claim(t.Context(), r)
		labtest.Must(t, err)
		_, err = tx(handler.Bind(t.Context(), r.ID, r.Owner))
		labtest.Must(t, err)
		done := make(chan error, 1)
		go func() { done <- change() }()
		if s.Dialect != goose.DialectSQLite3 { // whose one writer is the handler
			labtest.Must(t, <-done)
			done <- nil
		}
		labtest.Must(t, handler.Complete(t.Context(), labtest.Completion(r, "answer")))
		labtest.Must(t, <-done)
		before := served.Load()
		labtest.Eventually(t, what, func() bool { return t.Failed() || served.Load() > before+20 })
	}
	during("operations of this release on the newer table", func() error { return migrate(t.Context()) })

	// A write leaves a column as it is that its release does not know.
	r := labtest.NewClaim()
	r.Label = "known"
	labtest.WantClaim(t, old, r, store.Claimed)
	labtest.Exec(t, db, "UPDATE reprise_records SET later = 8 WHERE label = 'known'")
	labtest.Must(t, old.Complete(t.Context(), labtest.Completion(r, "answer")))
	var later int
	if err := db.QueryRowContext(t.Context(), "SELECT later FROM reprise_records WHERE label = 'known'").Scan(&later); err != nil || later != 8 {
		t.Errorf("the new column of a record is %d, %v; want 8", later, err)
	}

	WantFinding(t, "the next release", next, 0, "")
	labtest.Must(t, life(t.Context(), next))
	if err := db.QueryRowContext(t.Context(), "SELECT MIN(later) FROM reprise_records").Scan(&later); err != nil || later != 7 {
		t.Errorf("the new column is %d, %v", later, err)
	}
	newer := fmt.Sprintf("version %d, newer than the %d", known+1, known)
	WantFinding(t, "a newer table", old, store.Warning, newer)
	for what, call := range map[string]func(context.Context, *sql.DB, *slog.Logger) error{"Migrate": s.Migrate, "Open": s.Open} {
		var log bytes.Buffer
		if err := call(t.Context(), s.Pool(), slog.New(slog.NewTextHandler(&log, nil))); err != nil || !strings.Contains(log.String(), newer) {
			t.Errorf("%s over a newer table: %v, logged %s", what, err, &log)
		}
	}
	s.wantVersion(t, db, known+1)

	during("operations of this release on its own table again", func() error {
		_, err := db.ExecContext(t.Context(), "ALTER TABLE reprise_records DROP COLUMN later")
		if err == nil {
			_, err = db.ExecContext(t.Context(), fmt.Sprintf("DELETE FROM reprise_records_migrations WHERE version = %d", known+1))
		}
		return err
	})
	close(stop)
	workers.Wait()
	WantFinding(t, "this release again", old, 0, "")
	s.wantVersion(t, db, known)

	labtest.Exec(t, db, "ALTER TABLE reprise_records DROP COLUMN payload")
	WantFinding(t, "without a column", old, store.Unsafe, "which Migrate does not mend")
	labtest.Want(t, "Migrate without a column", s.Migrate(t.Context(), db, nil), store.ErrMisconfigured)
}

// life claims, releases, claims again, completes and replays an operation.
func life(ctx context.Context, st store.Store) error {
	r := labtest.NewClaim()
	for _, ends := range []func() error{
		func() error { return st.Release(ctx, r.ID, r.Owner) },
		func() error {
			return st.Complete(ctx, labtest.Completion(r, "answer"))
		},
	} {
		r.Owner = store.NewOwner()
		if got, err := st.Claim(ctx, r); err != nil || got.Outcome != store.Claimed {
			return fmt.Errorf("claim: %v, %w", got.Outcome, err)
		}
		if err := ends(); err != nil {
			return err
		}
	}
	r.Owner = store.NewOwner()
	if got, err := st.Claim(ctx, r); err != nil || got.Outcome != store.Completed || string(got.Payload) != "answer" {
		return fmt.Errorf("replay: %v %q, %w", got.Outcome, got.Payload, err)
	}
	return nil
}

// AnotherTool is a test: goose applies the files in both directions, and Migrate knows
// it.
func (s *Schema) AnotherTool(t *testing.T) {
	t.Helper()
	db := s.Pool()
	files := fstest.MapFS{}
	for _, m := range s.Migrations {
		files[m.Name+".sql"] = &fstest.MapFile{Data: []byte(m.Goose)}
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
		s.wantVersion(t, db, 0)
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
		if !errors.Is(err, store.ErrMisconfigured) || !strings.Contains(err.Error(), "does not mend") || !strings.Contains(err.Error(), "rename it, drop ") || !strings.Contains(err.Error(), "reprise_records_migrations and run Migrate") {
			t.Errorf("Migrate: %v", err)
		}
	}
	labtest.Exec(t, db, "ALTER TABLE reprise_records RENAME TO theirs")
	labtest.Exec(t, db, "DROP TABLE IF EXISTS reprise_records_migrations")
	labtest.Must(t, s.Migrate(t.Context(), db, nil))
	labtest.Must(t, s.Open(t.Context(), db, nil))
}

// LetsOthersGoOn is a test: others use the table while a transaction that has read it,
// such as that of a backup, keeps a migration waiting, of which the query waits counts
// the statements that wait.
func (s *Schema) LetsOthersGoOn(t *testing.T, waits string) {
	t.Helper()
	db := s.Pool()
	labtest.Must(t, s.Migrate(t.Context(), db, nil))
	st, err := s.New(db, nil)
	labtest.Must(t, err)
	next, err := s.New(s.Pool(), nil)
	labtest.Must(t, err)
	migrate := NextRelease(next, "ALTER TABLE {records} ADD COLUMN later INTEGER NOT NULL DEFAULT 7")
	backup, err := db.BeginTx(t.Context(), nil)
	labtest.Must(t, err)
	t.Cleanup(func() { _ = backup.Rollback() })
	labtest.Exec(t, backup, "SELECT COUNT(*) FROM reprise_records")
	done := make(chan error, 1)
	go func() { done <- migrate(t.Context()) }()
	for range 2 {
		labtest.Eventually(t, "the migration waits", func() bool {
			n := 0
			labtest.Must(t, db.QueryRowContext(t.Context(), waits).Scan(&n))
			return n == 1
		})
		for range 4 {
			labtest.Must(t, life(t.Context(), st))
		}
	}
	labtest.Must(t, backup.Rollback())
	labtest.Must(t, <-done)
	WantFinding(t, "the next release", next, 0, "")
}
