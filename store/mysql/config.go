package reprisemysql

import (
	"log/slog"
	"time"

	"github.com/reprise-go/reprise/store/internal/sqlstore"
)

// DefaultTable is the table of a zero [Config].
const DefaultTable = sqlstore.DefaultTable

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
