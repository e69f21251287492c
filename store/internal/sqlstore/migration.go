package sqlstore

import (
	"fmt"
	"slices"
	"strings"
)

// Step is one step of the schema of a dialect, and the statements that undo it. A step
// never changes once it is released. Where statements commit one by one, each of Up
// either may be executed again or then fails with an error for which [Dialect.Done] is
// true.
//
// Every statement of the store names its columns, so a later release can add one with a
// default while this release runs. This one leaves it as it was when it rewrites a row,
// so the later one must not trust it unless the row still has the revision, which every
// write raises, that the later one wrote.
type Step struct {
	Name     string
	Up, Down []string
}

// Migration is one step of the schema of a table. Another migration tool may apply its
// SQL, which also records that it was applied, so that Migrate and Check know.
type Migration struct {
	Version int    // from 1, without gaps
	Name    string // such as "0001_records"
	SQL     string // several statements
	Down    string // undoes SQL; the first step's deletes every record

	up, down []string
}

// Goose returns the migration as a file for goose (github.com/pressly/goose), with both
// directions. Atlas, golang-migrate and others take SQL and Down as they are.
func (m Migration) Goose() string {
	const begin, end = "-- +goose StatementBegin\n", ";\n-- +goose StatementEnd\n"
	blocks := func(statements []string) string { return begin + strings.Join(statements, end+begin) + end }
	return "-- +goose Up\n" + blocks(m.up) + "\n-- +goose Down\n" + blocks(m.down)
}

// Migrations returns every step of the schema of the table of o, in order. The error
// wraps ErrInvalid.
func (d *Dialect) Migrations(o Options) ([]Migration, error) {
	o, err := Fill(d.Name, o)
	if err != nil {
		return nil, err
	}
	return d.MigrationsOf(o.Table), nil
}

// MigrationsOf returns every step of the schema of a table, in order. Each records
// itself.
func (d *Dialect) MigrationsOf(table string) []Migration {
	list := make([]Migration, len(d.Steps))
	for i, step := range d.Steps {
		m := Migration{Version: i + 1, Name: fmt.Sprintf("%04d_%s", i+1, step.Name)}
		m.up = append(slices.Clone(step.Up), fmt.Sprintf("INSERT INTO {migrations} (version) VALUES (%d)", m.Version))
		m.down = append(slices.Clone(step.Down), fmt.Sprintf("DELETE FROM {migrations} WHERE version = %d", m.Version))
		if i == 0 {
			m.up = slices.Insert(m.up, 0, d.Versions)
			m.down[len(m.down)-1] = "DROP TABLE {migrations}"
		}
		for _, statements := range [][]string{m.up, m.down} {
			for n, s := range statements {
				statements[n] = d.load(table, s)
			}
		}
		m.SQL, m.Down = strings.Join(m.up, ";\n\n")+";\n", strings.Join(m.down, ";\n\n")+";\n"
		list[i] = m
	}
	return list
}
