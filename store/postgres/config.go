package reprisepg

import (
	"cmp"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/reprise-go/reprise/store/postgres/internal/table"
)

// The values that a zero [Config] stands for.
const (
	DefaultSchema    = "public"
	DefaultTable     = "reprise_records"
	DefaultTxTimeout = time.Minute
)

// Config says where the records are and how they are reached. The zero value is the
// default of every field.
type Config struct {
	// Schema is the schema of the table; empty means public. The search path is ignored. A
	// name is a letter or underscore, then letters, digits, underscores and dollars; it is
	// quoted, so upper case stays upper case.
	Schema string

	// Table is the table of the records, at most 50 bytes; empty means reprise_records.
	// The index, the functions and the table of applied migrations are named after it.
	// Two tables are two separate stores.
	Table string

	// NoCombining sends every claim and completion alone. The default,
	// false, sends those that arrive while eight are on their way together, in one
	// transaction: with many callers that saves most of the work. Whatever delays such a
	// transaction, such as a synchronous standby that is down, delays all the calls in it.
	NoCombining bool

	// TxTimeout is the longest that the transaction of a handler may be open (see [Tx]), 1 s
	// to 24 h; zero means a minute. At its end the store closes the connection, and the
	// server rolls back. If the process is paused, the server ends the session itself.
	// Stricter timeouts of the session stay in force.
	TxTimeout time.Duration

	// Accept lists codes of unsafe findings of Check that Open logs as warnings instead of
	// refusing the server: "fsync" and "full-page-writes" for a server that has a durable
	// log below PostgreSQL's, such as Neon. An unknown code is ErrInvalid.
	Accept []string

	// Purge is the pace at which the store deletes expired records, while an engine uses it.
	// A negative Purge.Every turns it off: then call Purge yourself.
	Purge Purging

	// Logger receives the warnings of Open, and problems that no caller sees: a failed
	// purge, and tables that do not exist. The default is [slog.Default].
	Logger *slog.Logger
}

// identifier is narrower than PostgreSQL allows, so that a migration for another tool
// raises no question of quoting.
var identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_$]*$`)

// options returns c with its defaults filled in, or an ErrInvalid that names the first
// invalid field.
func (c Config) options() (table.Options, error) {
	o := table.Options{
		Schema: cmp.Or(c.Schema, DefaultSchema), Table: cmp.Or(c.Table, DefaultTable),
		NoCombining: c.NoCombining, TxTimeout: cmp.Or(c.TxTimeout, DefaultTxTimeout),
		Accept: c.Accept, Logger: cmp.Or(c.Logger, slog.Default()),
	}
	var err error
	if o.Purge, err = c.Purge.pace(); err != nil {
		return o, err
	}
	for _, code := range c.Accept {
		if !slices.Contains(table.FindingCodes, code) {
			return o, table.Invalid("Config.Accept %q is not the code of a finding; want one of %s", code, strings.Join(table.FindingCodes, ", "))
		}
	}
	const names = "want at most %d bytes: a letter or underscore, then letters, digits, _ and $"
	switch {
	case len(o.Schema) > table.MaxSchema || !identifier.MatchString(o.Schema):
		return o, table.Invalid("Config.Schema %q: "+names, o.Schema, table.MaxSchema)
	case len(o.Table) > table.MaxTable || !identifier.MatchString(o.Table):
		return o, table.Invalid("Config.Table %q: "+names, o.Table, table.MaxTable)
	case o.TxTimeout < time.Second || o.TxTimeout > 24*time.Hour:
		return o, table.Invalid("Config.TxTimeout %v: want 1s to 24h", o.TxTimeout)
	}
	return o, nil
}
