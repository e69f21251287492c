package connect

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"

	"github.com/reprise-go/reprise/core/store"
	reprisepg "github.com/reprise-go/reprise/store/postgres"
)

// Store is a store with its abilities, and a description for people.
type Store struct {
	Kind     Kind
	Name     string // its kind and address, without a password
	Endpoint string // where its servers are
	User     string // the user or role that the server sees
	Settings Settings

	Prefix string           // of a store in Redis or etcd
	Config reprisepg.Config // of a PostgreSQL store
	Schema *Schema          // nil: it has none
	Store  store.Store      // as the application has it
	Look   store.Inspector  // lists, inspects and resolves, each call within Settings.Timeout
	Check  store.Checker    // examines the server
	Purger store.Purger     // nil: the server deletes expired records

	// Unexamined are the codes of findings of Check that are about the pool: it is this
	// program's, so they say nothing about the service.
	Unexamined []string

	Prove func(ctx context.Context) error // runs every operation on short-lived records
	Close func()                          // closes the connections

	secrets      []string
	pool         *pgxpool.Pool // of a PostgreSQL store
	server       string        // the first of its servers, with its port
	certificates certificates
}

// Open returns the store of the settings. It does not contact the server, but to log in
// to etcd. Its errors name the invalid setting, and contain no password.
func Open(ctx context.Context, s *Settings) (*Store, error) {
	silenceRedis()
	switch kind, err := KindOf(s.URL); kind {
	case Redis:
		return openRedis(s)
	case Postgres:
		return openPostgres(ctx, s)
	case MySQL:
		return openMySQL(s)
	case SQLite:
		return openSQLite(s)
	case Etcd:
		return openEtcd(ctx, s)
	default:
		return nil, err
	}
}

// attach finds the abilities of the store.
func (s *Store) attach(inner store.Store) {
	s.Store = inner
	look, _ := store.As[store.Inspector](inner)
	s.Look = bounded{look, s}
	s.Check, _ = store.As[store.Checker](inner)
	s.Purger, _ = store.As[store.Purger](inner)
}

// bounded bounds each call of an inspector.
type bounded struct {
	store.Inspector
	in *Store
}

func (b bounded) Inspect(ctx context.Context, id store.ID) (store.Record, error) {
	ctx, cancel := b.in.Bounded(ctx)
	defer cancel()
	return b.Inspector.Inspect(ctx, id)
}

func (b bounded) List(ctx context.Context, q store.Query) (store.Page, error) {
	ctx, cancel := b.in.Bounded(ctx)
	defer cancel()
	return b.Inspector.List(ctx, q)
}

func (b bounded) Resolve(ctx context.Context, id store.ID, r store.Resolution) error {
	ctx, cancel := b.in.Bounded(ctx)
	defer cancel()
	return b.Inspector.Resolve(ctx, id, r)
}

// WhereSetting begins a question about the settings that say where in the server the
// records are.
func (s *Store) WhereSetting() string {
	switch s.Kind {
	case Redis, Etcd:
		return "is --prefix"
	case Postgres:
		return "are --schema and --table"
	default:
		return "are the database and --table"
	}
}

// Elsewhere returns the names of other places of the server that have records, if the
// store can tell.
func (s *Store) Elsewhere(ctx context.Context) []string {
	surveyor, ok := store.As[store.Surveyor](s.Store)
	if !ok {
		return nil
	}
	ctx, cancel := s.Bounded(ctx)
	defer cancel()
	names, _ := surveyor.Elsewhere(ctx) // it only helps to find a mistake
	return names
}

// Bounded returns a context for one call of the store.
func (s *Store) Bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, s.Settings.Timeout)
}

// Redact takes passwords and URLs out of a text.
func (s *Store) Redact(text string) string {
	const shortest = 4 // a shorter password would take words apart, and is in no error of the clients
	for _, secret := range s.secrets {
		if len(secret) >= shortest {
			text = strings.ReplaceAll(text, secret, "[redacted]")
		}
	}
	return text
}

// redacted returns err with a text without passwords.
func (s *Store) redacted(err error) error {
	return redactedError{text: s.Redact(err.Error()), err: err}
}

type redactedError struct {
	text string
	err  error
}

func (e redactedError) Error() string { return e.text }
func (e redactedError) Unwrap() error { return e.err }

// Latency returns how long one read of the store takes.
func (s *Store) Latency(ctx context.Context) (time.Duration, error) {
	start := time.Now()
	_, err := s.Look.Inspect(ctx, store.ID{})
	if errors.Is(err, store.ErrNotFound) {
		err = nil
	}
	return time.Since(start), err
}

// silenceRedis sets the log of the package redis, which is one for the whole process.
var silenceRedis = sync.OnceFunc(func() { redis.SetLogger(quiet{}) })

// quiet discards the logs of clients: they would appear between the lines of the program,
// and the errors have the important part.
type quiet struct{}

func (quiet) Printf(context.Context, string, ...any) {}
