package reprisesqlite

import (
	"cmp"
	"log/slog"
	"strings"
	"time"

	"github.com/reprise-go/reprise/store/internal/sqlstore"
)

// DefaultTable is the table of a zero [Config].
const DefaultTable = sqlstore.DefaultTable

// Config says where the records are. The zero value is the default of every field.
type Config struct {
	// Table is the table of the records; empty means reprise_records. Its index has the same
	// name with the suffix "_due", and the table of its versions with "_migrations". A name
	// is a letter or underscore, then up to 49 letters, digits and underscores. Two tables
	// are two separate stores. Names of SQLite ignore case: Payments and payments are one
	// table.
	Table string

	// TxTimeout is the longest that the transaction of a handler may last, 1 s to 24 h; zero
	// means 5 s. At its end the store rolls back: see [Tx]. Renewals wait for it, so a
	// transaction that is longer than half of a lease may cost other attempts theirs.
	TxTimeout time.Duration

	// PurgeEvery is how often the store deletes expired records while an engine uses it, 1 s
	// or more; zero means a minute. A negative duration turns it off: then call Purge
	// yourself.
	PurgeEvery time.Duration

	// Logger receives failures that no caller sees, such as a failed purge, and the warnings
	// of Open; nil means [slog.Default].
	Logger *slog.Logger
}

// options returns c with the one name of its table.
func (c Config) options() sqlstore.Options {
	c.Table = strings.ToLower(c.Table)
	c.TxTimeout = cmp.Or(c.TxTimeout, 5*time.Second)
	return sqlstore.Options(c)
}
