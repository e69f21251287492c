package sqlstore

import (
	"cmp"
	"log/slog"
	"regexp"
	"time"
)

// DefaultTable is the table of the zero [Options].
const DefaultTable = "reprise_records"

// Options is the configuration that the stores of all databases share.
type Options struct {
	Table      string
	TxTimeout  time.Duration
	PurgeEvery time.Duration // negative: never
	Logger     *slog.Logger
}

// identifier is narrower than the databases allow, so that a migration for another tool
// raises no question of quoting. Its length leaves room for the suffixes of other names.
var identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,49}$`)

// Fill returns o with its defaults filled in, or an ErrInvalid that names db, the name of
// the database, and the first invalid field.
func Fill(db string, o Options) (Options, error) {
	o = Options{
		Table: cmp.Or(o.Table, DefaultTable), TxTimeout: cmp.Or(o.TxTimeout, time.Minute),
		PurgeEvery: cmp.Or(o.PurgeEvery, time.Minute), Logger: cmp.Or(o.Logger, slog.Default()),
	}
	switch {
	case !identifier.MatchString(o.Table):
		return o, Invalid(db, "Config.Table %q: want at most 50 bytes: a letter or underscore, then letters, digits and _", o.Table)
	case o.TxTimeout < time.Second || o.TxTimeout > 24*time.Hour:
		return o, Invalid(db, "Config.TxTimeout %v: want 1s to 24h", o.TxTimeout)
	case o.PurgeEvery >= 0 && o.PurgeEvery < time.Second:
		return o, Invalid(db, "Config.PurgeEvery %v: want 1s or more, or a negative duration for no purge", o.PurgeEvery)
	}
	return o, nil
}
