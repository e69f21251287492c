package sqlstore

import (
	"fmt"
	"slices"
	"strings"

	"github.com/reprise-go/reprise/core/store"
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

// Migrations returns every step of the schema of the table of o, in order. The error
// wraps ErrInvalid.
func (d *Dialect) Migrations(o Options) ([]store.Migration, error) {
	o, err := Fill(d.Name, o)
	if err != nil {
		return nil, err
	}
	return d.MigrationsOf(o.Table), nil
}

// MigrationsOf returns every step of the schema of a table, in order.
func (d *Dialect) MigrationsOf(table string) []store.Migration {
	const end, begin, over = ";\n\n", "-- +goose StatementBegin\n", ";\n-- +goose StatementEnd\n"
	list := make([]store.Migration, len(d.Steps))
	for i, step := range d.Steps {
		up, down := d.step(table, i)
		list[i] = store.Migration{
			Version: i + 1, Name: fmt.Sprintf("%04d_%s", i+1, step.Name),
			SQL: strings.Join(up, end) + ";\n", Down: strings.Join(down, end) + ";\n",
			Goose: "-- +goose Up\n" + begin + strings.Join(up, over+begin) + over + "\n-- +goose Down\n" + begin + strings.Join(down, over+begin) + over,
		}
	}
	return list
}

// step returns the statements of a step of the schema of a table, and those that undo it.
// Both record that.
func (d *Dialect) step(table string, i int) (up, down []string) {
	up = append(slices.Clone(d.Steps[i].Up), fmt.Sprintf("INSERT INTO {migrations} (version) VALUES (%d)", i+1))
	down = append(slices.Clone(d.Steps[i].Down), fmt.Sprintf("DELETE FROM {migrations} WHERE version = %d", i+1))
	if i == 0 {
		up = slices.Insert(up, 0, d.Versions)
		down[len(down)-1] = "DROP TABLE {migrations}"
	}
	for _, statements := range [][]string{up, down} {
		for n, s := range statements {
			statements[n] = d.load(table, s)
		}
	}
	return up, down
}
