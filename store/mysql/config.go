package reprisemysql

import (
	"cmp"
	"log/slog"
	"regexp"
	"time"

	"github.com/reprise-go/reprise/store/internal/sqlstore"
	"github.com/reprise-go/reprise/store/internal/upkeep"
)

// The values that a zero [Config] stands for.
const (
	DefaultTable      = "reprise_records"
	DefaultTxTimeout  = time.Minute
	DefaultPurgeEvery = time.Minute
)

// Config says where the records are. The zero value is the default of every field.
type Config struct {
	// Table is the table of the records; empty means reprise_records. The table of its
	// versions has the suffix "_migrations". A name is a letter or underscore, then up to 49
	// letters, digits and underscores. Two tables are two separate stores. The server's
	// lower_case_table_names says whether two names that differ in case are two tables.
	Table string

	// TxTimeout is the longest that the transaction of a handler may last, 1 s to 24 h; zero
	// means a minute. At its end the store rolls back: see [Tx].
	TxTimeout time.Duration

	// PurgeEvery is how often the store deletes expired records while an engine uses it, 1 s
	// or more; zero means a minute. A negative duration turns it off: then call Purge
	// yourself.
	PurgeEvery time.Duration

	// Logger receives failures that no caller sees, such as a failed purge, and the warnings
	// of Open; nil means [slog.Default].
	Logger *slog.Logger
}

var identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,49}$`)

// purgeBatch is how many records a purge deletes in one transaction, which others wait
// for.
const (
	purgeBatch   = 500
	purgeTimeout = 30 * time.Second
)

// options returns c with its defaults filled in, or an ErrInvalid that names the first
// invalid field.
func (c Config) options() (sqlstore.Options, error) {
	o := sqlstore.Options{
		Table:  cmp.Or(c.Table, DefaultTable),
		Purge:  upkeep.Pace{Every: cmp.Or(c.PurgeEvery, DefaultPurgeEvery), Batch: purgeBatch, Timeout: purgeTimeout},
		Logger: cmp.Or(c.Logger, slog.Default()),
	}
	switch timeout := cmp.Or(c.TxTimeout, DefaultTxTimeout); {
	case !identifier.MatchString(o.Table):
		return o, dialect.Invalid("Config.Table %q: want at most 50 bytes: a letter or underscore, then letters, digits and _", o.Table)
	case timeout < time.Second || timeout > 24*time.Hour:
		return o, dialect.Invalid("Config.TxTimeout %v: want 1s to 24h", timeout)
	case o.Purge.Every >= 0 && o.Purge.Every < time.Second:
		return o, dialect.Invalid("Config.PurgeEvery %v: want 1s or more, or a negative duration for no purge", o.Purge.Every)
	}
	return o, nil
}
