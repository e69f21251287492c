package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/reprise-go/reprise/core/store"
)

// Version returns the version of the last step that was applied; 0 means none.
func (t *Table) Version(ctx context.Context) (version int, err error) {
	err = t.Read(ctx, "version", func(ctx context.Context, on Conn) (err error) {
		if version, err = t.version(ctx, on); err != nil && t.Dialect.Missing(err) {
			return nil
		}
		return err
	})
	return version, err
}

func (t *Table) version(ctx context.Context, on Conn) (version int, err error) {
	var applied int64
	err = on.Query(ctx, t.Dialect.load(t.Options.Table, "SELECT COALESCE(MAX(version), 0) FROM {migrations}"),
		func(r Row) error { return r.Scan(&applied) })
	return int(applied), err
}

// Migrate applies the missing steps, or leaves a newer schema as it is, with a warning.
// One of several callers applies them, and the others wait until ctx ends. The error is
// ErrMisconfigured if this release cannot use the table then.
func (t *Table) Migrate(ctx context.Context) error {
	for {
		applied, err := t.Version(ctx)
		switch {
		case err != nil:
		case applied >= len(t.Dialect.Steps):
			err = t.Read(ctx, "migrate", func(ctx context.Context, on Conn) error { return t.accept(ctx, on, applied) })
		default:
			err = t.migrateAlone(ctx)
		}
		// A statement that waits for the transactions on the table gives up, because later
		// users of the table wait behind it. They go on between two tries. SQLite refuses even
		// to read while another process makes a new file ready for its log.
		if !errors.Is(err, store.ErrBusy) || !sleep(ctx, time.Second) {
			return err
		}
	}
}

// migrateAlone applies the missing steps once no other process migrates the table.
func (t *Table) migrateAlone(ctx context.Context) error {
	var result error
	err := t.Lend(ctx, "migrate", func(on Conn) (broken bool) {
		if result = t.Dialect.alone(ctx, on, t.Options.Table); result == nil {
			result = t.migrate(ctx, on)
		}
		end := "COMMIT"
		if result != nil {
			end = "ROLLBACK"
		}
		_, ended := on.Exec(t.Dialect.rest(ctx), end)
		if result == nil {
			result = t.Dialect.FailCommit("migrate", ended)
		}
		// Where each statement commits, the session has the lock and its limits, and its end
		// frees both, whatever became of the statements.
		return ended != nil || t.Dialect.Done != nil
	})
	return t.Dialect.Fail("migrate", errors.Join(err, result))
}

// alone waits until the session or transaction is the only one that migrates the table.
func (d *Dialect) alone(ctx context.Context, on Conn, table string) error {
	for try := 1; ; try++ {
		err := d.Fail("migrate", d.Alone(ctx, on, table))
		if !errors.Is(err, store.ErrBusy) || !pause(ctx, try) {
			return err
		}
	}
}

func (t *Table) migrate(ctx context.Context, on Conn) error {
	if err := t.apply(ctx, on, t.Dialect.load(t.Options.Table, t.Dialect.Versions)); err != nil {
		return err
	}
	applied, err := t.version(ctx, on)
	if err != nil {
		return err
	}
	for i := applied; i < len(t.Dialect.Steps); i++ {
		up, _ := t.Dialect.step(t.Options.Table, i)
		for _, statement := range up {
			if err := t.apply(ctx, on, statement); err != nil {
				return err
			}
		}
	}
	return t.accept(ctx, on, max(applied, len(t.Dialect.Steps)))
}

// apply executes a statement of a step.
func (t *Table) apply(ctx context.Context, on Conn, statement string) error {
	_, err := on.Exec(ctx, statement)
	if err != nil && t.Dialect.Done != nil && t.Dialect.Done(err) {
		return nil
	}
	return t.Dialect.Fail("migrate", err)
}

// accept returns an error for a schema that this release cannot use, and logs a warning
// about a newer one.
func (t *Table) accept(ctx context.Context, on Conn, applied int) error {
	f, found, err := t.judgeSchema(ctx, on, applied)
	switch {
	case err != nil:
		return err
	case found && f.Severity == store.Unsafe:
		return fmt.Errorf("%w: %s: migrate: %s", store.ErrMisconfigured, t.Dialect.Name, f.Detail)
	case found:
		t.warn(ctx, f)
	}
	return nil
}

// checkSchema returns the finding about the schema, and false if it is that of this
// release.
func (t *Table) checkSchema(ctx context.Context) (f store.Finding, found bool, err error) {
	applied, err := t.Version(ctx)
	if errors.Is(err, store.ErrMisconfigured) {
		return t.schemaFinding(store.Unsafe, "its version cannot be read (%v); grant SELECT on %s_migrations", err, t.Options.Table), true, nil
	}
	if err != nil {
		return f, false, err
	}
	err = t.Read(ctx, "check", func(ctx context.Context, on Conn) (err error) {
		f, found, err = t.judgeSchema(ctx, on, applied)
		return err
	})
	if found && applied == 0 { // or it has another name
		ctx, cancel := context.WithTimeout(ctx, time.Second) // a table of others may be locked
		defer cancel()
		if others, _ := t.Elsewhere(ctx); len(others) > 0 {
			f.Detail += "; if Config has the wrong name: there are records in " + strings.Join(others, ", ")
		}
	}
	return f, found, err
}

func (t *Table) schemaFinding(severity store.Severity, format string, args ...any) store.Finding {
	return store.Finding{Code: "schema", Severity: severity, Detail: "the table " + t.Options.Table + ": " + fmt.Sprintf(format, args...)}
}

// judgeSchema is checkSchema for a schema of a known version. It reads a record that does
// not exist, which fails if a column is missing.
func (t *Table) judgeSchema(ctx context.Context, on Conn, applied int) (f store.Finding, found bool, err error) {
	const advice = "run Migrate, or apply what Migrations returns"
	known := len(t.Dialect.Steps)
	switch {
	case applied == 0:
		return t.schemaFinding(store.Unsafe, "it does not exist or has no version; "+advice), true, nil
	case applied < known:
		return t.schemaFinding(store.Unsafe, "it has version %d and this release needs %d; "+advice, applied, known), true, nil
	}
	if _, err = t.look(ctx, on, store.ID{}); err == nil && t.Dialect.Calls != "" {
		err = on.Query(ctx, t.Dialect.Calls, func(Row) error { return nil })
	}
	cause := err
	switch err = t.Dialect.Fail("read", err); {
	case errors.Is(err, store.ErrMisconfigured):
		return t.schemaFinding(store.Unsafe, "it has version %d and this release needs %d, but it cannot be used, which Migrate does not mend: "+
			"%v; if it is missing or of another program, rename it, drop %s_migrations and run Migrate", applied, known, cause, t.Options.Table), true, nil
	case err != nil:
		return f, false, err
	case applied > known:
		return t.schemaFinding(store.Warning, "it has version %d, newer than the %d that this release knows", applied, known), true, nil
	}
	return f, false, nil
}

func (t *Table) warn(ctx context.Context, f store.Finding) {
	t.Options.Logger.LogAttrs(ctx, slog.LevelWarn, "reprise: "+f.Detail, slog.String("store", t.Dialect.Name), slog.String("code", f.Code))
}
