package serve

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"

	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/store"
)

// StoreOptions are the places where stores keep their records. Each store ignores those
// of the others.
type StoreOptions struct {
	RedisURL    string        // also of a Cluster or of Sentinels, in the forms that go-redis documents
	RedisPrefix string        // of every key; empty: "reprise:"
	PostgresURL string        // effects need it with every store but SQLite and MySQL
	SQLiteFile  string        // created if it is missing; effects are in it, too
	MySQLURL    string        // mysql://user:password@host:port/database; effects are in it, too
	EtcdURL     string        // members of a cluster: host:port, with commas between
	Schema      string        // of the tables, created if it is missing; empty: public
	Pool        int           // connections; 0: the client's default
	NoCombining bool          // of the Redis store
	RedisHook   redis.Hook    // of the client of the Redis store; nil: none
	Acked       int           // replicas that confirm each write of the Redis store; 0: none
	MaxRecords  int           // of the memory store; 0: its default
	MaxBytes    int64         // likewise
	TxTimeout   time.Duration // of the transactions of handlers; 0: the store's default
}

// Backend is an open store, with its resources.
type Backend struct {
	Store store.Store

	// Effect inserts a row into the table reprise_effects: in the transaction of the attempt
	// where the store has one, else autocommitted. It is nil without a PostgresURL, unless
	// the store is SQLite or MySQL.
	Effect func(ctx context.Context, op string) error

	transactional bool // the guard is Transactional

	purger   store.Purger  // nil: the store has none
	postgres *pgxpool.Pool // nil until it is needed
	closers  []func()
}

// Close lets go of the connections. It waits for those that are in use.
func (b *Backend) Close() {
	for _, c := range slices.Backward(b.closers) {
		c()
	}
}

// stores has every store by its name. An opener fills in the store and its closers.
var stores = map[string]func(context.Context, *Backend, StoreOptions) error{
	"memory":      openMemory,
	"redis":       openRedis,
	"postgres":    openPostgres,
	"postgres-tx": transactional(openPostgres),
	"mysql":       openMySQL,
	"mysql-tx":    transactional(openMySQL),
	"sqlite":      openSQLite,
	"sqlite-tx":   transactional(openSQLite),
}

// transactional returns open with a transactional guard.
func transactional(open func(context.Context, *Backend, StoreOptions) error) func(context.Context, *Backend, StoreOptions) error {
	return func(ctx context.Context, b *Backend, o StoreOptions) error {
		b.transactional = true
		return open(ctx, b, o)
	}
}

// Register adds a store whose client the module lab does not require. It is called before
// anything else of this package. The function that open returns closes the store.
func Register(name string, open func(context.Context, *Backend, StoreOptions) (closes func(), err error)) {
	stores[name] = func(ctx context.Context, b *Backend, o StoreOptions) error {
		closes, err := open(ctx, b, o)
		if closes != nil {
			b.closers = append(b.closers, closes)
		}
		return err
	}
}

// Stores returns the names of the stores, sorted.
func Stores() []string { return slices.Sorted(maps.Keys(stores)) }

// OpenStore opens a store and creates its tables in an empty database. The name is one of
// [Stores].
func OpenStore(ctx context.Context, name string, o StoreOptions) (*Backend, error) {
	open, known := stores[name]
	if !known {
		return nil, fmt.Errorf("no store %q; there are %v", name, Stores())
	}
	b := new(Backend)
	if err := b.open(ctx, open, o); err != nil {
		b.Close()
		return nil, fmt.Errorf("store %s: %w", name, err)
	}
	return b, nil
}

func (b *Backend) open(ctx context.Context, st func(context.Context, *Backend, StoreOptions) error, o StoreOptions) error {
	if err := st(ctx, b, o); err != nil {
		return err
	}
	b.purger, _ = store.As[store.Purger](b.Store)
	if b.Effect == nil && o.PostgresURL != "" {
		var err error
		if b.Effect, err = b.effects(ctx, o); err != nil {
			return err
		}
	}
	if b.Effect != nil {
		b.Store = &ownerStore{b.Store}
	}
	return nil
}

func openMemory(_ context.Context, b *Backend, o StoreOptions) error {
	store, err := memstore.NewBounded(memstore.Bounds{Records: o.MaxRecords, Bytes: o.MaxBytes})
	b.Store = store
	return err
}
