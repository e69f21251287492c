package sqlstore

import (
	"context"
	"fmt"
	"slices"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/internal/probe"
)

// Findings collects the findings of a check.
type Findings []store.Finding

// Add adds a finding if it was noticed.
func (l *Findings) Add(noticed bool, code string, severity store.Severity, format string, args ...any) {
	if noticed {
		*l = append(*l, store.Finding{Code: code, Severity: severity, Detail: fmt.Sprintf(format, args...)})
	}
}

// Check implements [store.Checker]: it checks the settings of the server as one session
// of the pool sees them, the schema, and then the table. It does not write. A finding
// that was accepted is a warning, also for those who are paged for an unsafe server.
func (t *Table) Check(ctx context.Context) ([]store.Finding, error) {
	list, err := t.findings(ctx)
	for i, f := range list {
		if f.Severity == store.Unsafe && slices.Contains(t.Accepted, f.Code) {
			list[i].Severity, list[i].Detail = store.Warning, "accepted: "+f.Detail
		}
	}
	return list, err
}

func (t *Table) findings(ctx context.Context) ([]store.Finding, error) {
	var (
		list    Findings
		replica bool
	)
	if err := t.Read(ctx, "check", func(ctx context.Context, on Conn) error {
		settings := map[string]string{}
		err := on.Query(ctx, t.Dialect.Settings, func(r Row) error {
			var name, value string
			err := r.Scan(&name, &value)
			settings[name] = value
			return err
		})
		if err == nil {
			list, replica = t.Dialect.Judge(t, on, settings)
		}
		return err
	}); err != nil || replica {
		return list, err
	}
	schema, found, err := t.checkSchema(ctx)
	if err != nil {
		return nil, err
	}
	if found {
		list = append(list, schema)
	}
	if schema.Severity == store.Unsafe || t.Dialect.JudgeTable == nil { // what the next checks need may be missing
		return list, nil
	}
	table, err := t.Dialect.JudgeTable(ctx, t)
	if err != nil {
		return nil, err
	}
	return append(list, table...), nil
}

// Prove returns an error that names all unsafe findings, or else tries every operation on
// a new record, which it deletes. It logs the other findings.
func (t *Table) Prove(ctx context.Context) error {
	if err := probe.Judge(ctx, t.Dialect.Name, t.Options.Logger, t); err != nil {
		return err
	}
	return (&probe.Probe{
		Name: t.Dialect.Name, Store: t, Rival: t, LostRace: ErrLostRace,
		Read: func(ctx context.Context, id store.ID) error {
			_, err := t.Inspect(ctx, id)
			return err
		},
		Delete: func(ctx context.Context, id store.ID) error {
			return t.Write(ctx, "delete", func(ctx context.Context, on Conn) error {
				found, err := t.look(ctx, on, id)
				if err != nil {
					return err
				}
				if !found.Found {
					return probe.Unexpected("no row", "the row of the record")
				}
				return t.change(ctx, on, found, t.statements.remove) // also a trial of the right to delete
			})
		},
	}).Run(ctx)
}
