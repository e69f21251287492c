package reprisepg

import (
	"fmt"
	"log/slog"
	"regexp"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	reprise "github.com/reprise-go/reprise/core"
)

// The values that a zero [Config] stands for.
const (
	DefaultSchema    = "public"
	DefaultTable     = "reprise_records"
	DefaultTxTimeout = time.Minute
)

// Config says where the records are and how they are reached. The zero value is the default of every field.
type Config struct {
	// Schema is the schema of the table; empty means public. The search path plays no part. A name is a letter or
	// underscore, then letters, digits, underscores and dollars; it is quoted, so upper case stays upper case.
	Schema string

	// Table is the table of the records, at most 50 bytes; empty means reprise_records. The fence sequence, the index, the
	// claim function and the table of applied migrations are named after it, with the suffixes _fence, _expires_at, _claim_v1
	// and _migrations. Two tables are two separate stores.
	Table string

	// ExecMode is how pgx sends the statements of the leased store, and the single statements of the transactional one. Zero means
	// [pgx.QueryExecModeExec]: one round trip, nothing kept in the session, so that it works behind every pooler.
	// [pgx.QueryExecModeCacheStatement] saves the server the parsing, on connections that no pooler shares. The
	// transactions of the transactional store, like the statements of the handlers in them, follow the
	// DefaultQueryExecMode of the pool.
	ExecMode pgx.QueryExecMode

	// TxTimeout is the longest that an attempt of the transactional store may last, 1 s to 24 h; zero means a minute. At
	// its end the connection is closed, and the server ends the session of a process that is paused. The
	// leased store does not use it.
	TxTimeout time.Duration

	// Logger receives what nobody is there to be told, such as a failed purge of RunPurger; nil means [slog.Default].
	Logger *slog.Logger
}

// identifier is narrower than what PostgreSQL allows: whoever prints a migration for another tool should not have to think
// about quoting.
var identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_$]*$`)

// The longest names: PostgreSQL cuts identifiers at 63 bytes, and the longest suffix of the table has 11.
const (
	maxSchema = 63
	maxTable  = 50
)

// withDefaults returns c with its defaults filled in, or ErrMisconfigured naming the first field that cannot be.
func (c Config) withDefaults() (Config, error) {
	if c.Schema == "" {
		c.Schema = DefaultSchema
	}
	if c.Table == "" {
		c.Table = DefaultTable
	}
	if c.ExecMode == 0 {
		c.ExecMode = pgx.QueryExecModeExec
	}
	if c.TxTimeout == 0 {
		c.TxTimeout = DefaultTxTimeout
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	switch {
	case len(c.Schema) > maxSchema || !identifier.MatchString(c.Schema):
		return c, fmt.Errorf("%w: schema name %q", reprise.ErrMisconfigured, c.Schema)
	case len(c.Table) > maxTable || !identifier.MatchString(c.Table):
		return c, fmt.Errorf("%w: table name %q", reprise.ErrMisconfigured, c.Table)
	case c.ExecMode < pgx.QueryExecModeCacheStatement || c.ExecMode > pgx.QueryExecModeSimpleProtocol:
		return c, fmt.Errorf("%w: unknown ExecMode %d", reprise.ErrMisconfigured, c.ExecMode)
	case c.TxTimeout < time.Second || c.TxTimeout > 24*time.Hour:
		return c, fmt.Errorf("%w: TxTimeout %v, want 1s to 24h", reprise.ErrMisconfigured, c.TxTimeout)
	}
	return c, nil
}

// checkPool refuses what no store can work with.
func checkPool(pool *pgxpool.Pool) error {
	if pool == nil {
		return fmt.Errorf("%w: the pool is nil", reprise.ErrMisconfigured)
	}
	return nil
}
