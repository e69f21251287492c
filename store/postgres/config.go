package reprisepg

import (
	"cmp"
	"log/slog"
	"regexp"
	"time"

	"github.com/reprise-go/reprise/store/internal/sqlstore"
)

// The schema and the table of a zero [Config].
const (
	DefaultSchema = "public"
	DefaultTable  = sqlstore.DefaultTable
)

// Config says where the records are and how they are reached. The zero value is the
// default of every field.
type Config struct {
	// Schema is the schema of the table; empty means public. The search path is ignored. A
	// name is a letter or underscore, then letters, digits and underscores; it is quoted, so
	// upper case stays upper case.
	Schema string

	// Table is the table of the records, at most 50 bytes; empty means reprise_records.
	// The index, the functions and the table of applied migrations are named after it.
	// Two tables are two separate stores.
	Table string

	// TxTimeout is the longest that the transaction of a handler may be open (see [Tx]), 1 s
	// to 24 h; zero means a minute. At its end the store closes the connection, and the
	// server rolls back. If the process is paused, the server ends the session itself.
	// Stricter timeouts of the session stay in force.
	TxTimeout time.Duration

	// Accept lists codes of unsafe findings that are warnings: Open logs them instead of
	// refusing the server, and Check grades them so: "fsync" and "full-page-writes" for a
	// server that has a durable log below PostgreSQL's, such as Neon.
	Accept []string

	// PurgeEvery is how often the store deletes expired records while an engine uses it, 1 s
	// or more; zero means a minute. A negative duration turns it off: then call Purge
	// yourself.
	PurgeEvery time.Duration

	// Logger receives failures that no caller sees, such as a failed purge, and the warnings
	// of Open; nil means [slog.Default].
	Logger *slog.Logger
}

// identifier of a schema: see that of a table.
var identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,62}$`)

// options returns the names of the table of c, and the part of c that all databases have,
// with its defaults filled in, or an ErrInvalid that names the first invalid field.
func (c Config) options() (n names, o sqlstore.Options, err error) {
	schema := cmp.Or(c.Schema, DefaultSchema)
	if !identifier.MatchString(schema) {
		return n, o, invalid("Config.Schema %q: want at most 63 bytes: a letter or underscore, then letters, digits and _", schema)
	}
	o, err = sqlstore.Fill(storeName, sqlstore.Options{Table: c.Table, TxTimeout: c.TxTimeout, PurgeEvery: c.PurgeEvery, Logger: c.Logger})
	n = newNames(o.Table, schema)
	o.Table = n.table
	return n, o, err
}
