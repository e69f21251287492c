package sqlstore

import (
	"context"
	"database/sql"

	"github.com/reprise-go/reprise/store/internal/slots"
)

// New returns the store over the table of o in db. It does not contact the database. The
// error wraps ErrInvalid.
func (d *Dialect) New(db *sql.DB, o Options) (*Table, error) {
	o, err := Fill(d.Name, o)
	if err != nil {
		return nil, err
	}
	if db == nil {
		return nil, Invalid(d.Name, "the *sql.DB is nil")
	}
	pool := newPool(db, d)
	if d.Embedded {
		turns := &slots.Slots{Limit: 1} // the database has one writer
		t := NewTable(pool, d, o, newSerial(pool, d, turns), pool.use)
		t.Transactions = t.transactions(turns)
		return t, nil
	}
	t := NewTable(pool, d, o, &Direct{With: pool.lend, Dialect: d}, pool.use)
	t.Transactions = t.transactions(t.Turns())
	return t, nil
}

// Open is New, followed by [Table.Prove].
func (d *Dialect) Open(ctx context.Context, db *sql.DB, o Options) (*Table, error) {
	t, err := d.New(db, o)
	if err == nil {
		err = t.Prove(ctx)
	}
	return t, err
}

// Migrate is [Table.Migrate] for the table of o in db.
func (d *Dialect) Migrate(ctx context.Context, db *sql.DB, o Options) error {
	t, err := d.New(db, o)
	if err != nil {
		return err
	}
	return t.Migrate(ctx)
}

// Version is [Table.Version] for the table of o in db.
func (d *Dialect) Version(ctx context.Context, db *sql.DB, o Options) (int, error) {
	t, err := d.New(db, o)
	if err != nil {
		return 0, err
	}
	return t.Version(ctx)
}
