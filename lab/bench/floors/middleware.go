package floors

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"

	"github.com/reprise-go/reprise/conformance/adaptertest"
	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/bench/load"
)

const (
	retention = 24 * time.Hour
	claimed   = 96 // bytes of a record in progress: owner, fingerprint and other fields
)

// options says where the databases are.
type options struct {
	redisURL    string
	postgresURL string
	mysqlURL    string
	etcdURL     string
	sqliteFile  string
	upstream    string
	pool        int
}

// open returns the middleware of a floor, whose connections end with the process.
func (o options) open(ctx context.Context, floor string) (middleware, error) {
	var f Round
	var err error
	switch floor {
	case "redis", "setnx":
		c, failed := redis.ParseURL(o.redisURL)
		if failed != nil {
			return nil, errors.New("the URL of Redis cannot be read") // it may hold a password
		}
		c.PoolSize, c.ContextTimeoutEnabled = o.pool, true
		client := redis.NewClient(c)
		if floor == "setnx" {
			return setNX{client}.wrap, nil
		}
		f, err = newScripts(ctx, client)
	case "postgres":
		f, err = newStatements(ctx, o)
	case "sqlite":
		f, err = openSQLite(ctx, o)
	case "mysql":
		f, err = openMySQL(ctx, o)
	case "forward":
		return func(http.Handler) http.Handler { return newForward(o.upstream) }, nil
	case "etcd":
		if openEtcd == nil {
			return nil, errors.New("the floor etcd is that of lab/etcd/floors")
		}
		f, _, err = openEtcd(ctx, o.etcdURL)
	default:
		return nil, fmt.Errorf("no floor %q", floor)
	}
	return bareFloor(f), err
}

// Round is the round trips of a floor: one before the handler, one behind it.
type Round interface {
	Claim(ctx context.Context, id [32]byte) error
	Complete(ctx context.Context, id [32]byte, body []byte) error
	Replay(ctx context.Context, id [32]byte) (body []byte, err error)
}

// openEtcd opens the floor etcd at members: see [RegisterEtcd].
var openEtcd func(ctx context.Context, members string) (Round, func(), error)

// RegisterEtcd adds the floor etcd, whose client the module lab does not require. It is
// called before Main. The function that open returns closes the client.
func RegisterEtcd(open func(ctx context.Context, members string) (Round, func(), error)) {
	openEtcd = open
}

// bareFloor is the middleware around a round.
func bareFloor(f Round) middleware {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			ctx, id := r.Context(), sha256.Sum256([]byte(r.Header.Get("Idempotency-Key")))
			if r.Header.Get(load.KindHeader) == string(load.Replay) {
				body, err := f.Replay(ctx, id)
				if failed(w, err) {
					return
				}
				w.Header().Set("Content-Type", adaptertest.DefaultContentType)
				w.WriteHeader(adaptertest.DefaultStatus)
				_, _ = w.Write(body) //nolint:gosec // a benchmark's own bytes
				return
			}
			if failed(w, f.Claim(ctx, id)) {
				return
			}
			c := capture{ResponseWriter: w}
			next.ServeHTTP(&c, r)
			if failed(w, f.Complete(ctx, id, c.body)) {
				return
			}
			w.WriteHeader(c.status)
			_, _ = w.Write(c.body)
		})
	}
}

func failed(w http.ResponseWriter, err error) bool {
	if err == nil {
		return false
	}
	http.Error(w, err.Error(), http.StatusInternalServerError)
	return true
}

// capture keeps a response back. The body is the handler's own slice: it writes once.
type capture struct {
	http.ResponseWriter

	status int
	body   []byte
}

func (c *capture) WriteHeader(status int) { c.status = status }

func (c *capture) Write(p []byte) (int, error) {
	c.body = p
	return len(p), nil
}

// scripts are the floor over Redis.
type scripts struct {
	client   *redis.Client
	set, get *redis.Script
	claimed  []byte
}

func newScripts(ctx context.Context, client *redis.Client) (*scripts, error) {
	f := &scripts{
		client:  client,
		set:     redis.NewScript(`return redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2]) and 1`),
		get:     redis.NewScript(`return redis.call('GET', KEYS[1])`),
		claimed: bytes.Repeat([]byte("c"), claimed),
	}
	return f, errors.Join(f.set.Load(ctx, client).Err(), f.get.Load(ctx, client).Err())
}

func key(id [32]byte) []string { return []string{"floor:" + string(id[:])} }

// Claim implements [Round].
func (f *scripts) Claim(ctx context.Context, id [32]byte) error {
	return f.set.EvalSha(ctx, f.client, key(id), f.claimed, retention.Milliseconds()).Err()
}

// Complete implements [Round].
func (f *scripts) Complete(ctx context.Context, id [32]byte, body []byte) error {
	return f.set.EvalSha(ctx, f.client, key(id), body, retention.Milliseconds()).Err()
}

// Replay implements [Round].
func (f *scripts) Replay(ctx context.Context, id [32]byte) ([]byte, error) {
	text, err := f.get.EvalSha(ctx, f.client, key(id)).Text()
	return []byte(text), err
}

// statements are the floor over PostgreSQL.
type statements struct{ pool *pgxpool.Pool }

func newStatements(ctx context.Context, o options) (*statements, error) {
	pool, err := o.openPostgres(ctx, createKeys)
	return &statements{pool}, err
}

// openPostgres opens a pool, and creates a table that any number of processes may create
// at once.
func (o options) openPostgres(ctx context.Context, create string) (*pgxpool.Pool, error) {
	c, err := pgxpool.ParseConfig(o.postgresURL)
	if err != nil {
		return nil, errors.New("the URL of PostgreSQL cannot be read") // it may hold a password
	}
	if o.pool > 0 {
		c.MaxConns = int32(o.pool) //nolint:gosec // a flag of a benchmark
	}
	pool, err := pgxpool.NewWithConfig(ctx, c)
	if err != nil {
		return nil, err
	}
	return pool, pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock(hashtextextended('bench_floor', 0))`)
		if err == nil {
			_, err = tx.Exec(ctx, create)
		}
		return err
	})
}

// openEffect returns the effect of a handler that opens a transaction: the row that the
// test servers insert into that of the attempt. With a key, the handler does in it by
// hand the least that makes it idempotent: it reads the row of its key before, and writes
// it with the response after.
func (o options) openEffect(ctx context.Context, keyed bool) (func(ctx context.Context, op string) error, error) {
	pool, err := o.openPostgres(ctx, createEffects+";"+createKeys)
	owner, body := make([]byte, len(store.Owner{})), []byte(adaptertest.DefaultBody)
	return func(ctx context.Context, op string) error {
		var id [sha256.Size]byte // the effects of the load have one name
		_, _ = rand.Read(id[:])
		return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
			if keyed {
				var done []byte
				err := tx.QueryRow(ctx, `SELECT payload FROM bench_floor WHERE id = $1`, id[:]).Scan(&done)
				if !errors.Is(err, pgx.ErrNoRows) {
					return errors.Join(err, errors.New("the key was there"))
				}
			}
			_, err := tx.Exec(ctx, `INSERT INTO reprise_effects (op, attempt, owner, at) VALUES ($1, 1, $2, clock_timestamp())`, op, owner)
			if err == nil && keyed {
				_, err = tx.Exec(ctx, `INSERT INTO bench_floor VALUES ($1, 2, $2, $3, $4)`, id[:], owner, id[:], body)
			}
			return err
		})
	}, err
}

const (
	createKeys    = `CREATE TABLE IF NOT EXISTS bench_floor (id bytea PRIMARY KEY, state smallint NOT NULL, owner bytea NOT NULL, fingerprint bytea NOT NULL, payload bytea NOT NULL) WITH (fillfactor = 90)`
	createEffects = `CREATE TABLE IF NOT EXISTS reprise_effects (op text NOT NULL, attempt integer NOT NULL, owner bytea, at timestamptz NOT NULL)`
)

// Claim implements [Round].
func (f *statements) Claim(ctx context.Context, id [32]byte) error {
	_, err := f.pool.Exec(ctx, `INSERT INTO bench_floor VALUES ($1, 1, $2, $3, '')`, id[:], id[:16], id[:])
	return err
}

// Complete implements [Round].
func (f *statements) Complete(ctx context.Context, id [32]byte, body []byte) error {
	_, err := f.pool.Exec(ctx, `UPDATE bench_floor SET state = 2, payload = $2 WHERE id = $1`, id[:], body)
	return err
}

// Replay implements [Round].
func (f *statements) Replay(ctx context.Context, id [32]byte) (body []byte, err error) {
	err = f.pool.QueryRow(ctx, `SELECT payload FROM bench_floor WHERE id = $1`, id[:]).Scan(&body)
	return body, err
}

// setNX is the middleware that articles show, in its best form: a replay is one round
// trip.
type setNX struct{ client *redis.Client }

// stored is the response as the articles store it.
type stored struct {
	Status int
	Header http.Header
	Body   []byte
}

const inProgress = "in progress"

func (m setNX) wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := r.Header.Get("Idempotency-Key")
		if name == "" {
			next.ServeHTTP(w, r)
			return
		}
		name = "idempotency:" + name
		found, err := m.client.SetArgs(r.Context(), name, inProgress, redis.SetArgs{Mode: "NX", Get: true, TTL: retention}).Result()
		switch {
		case errors.Is(err, redis.Nil): // it is ours
		case failed(w, err):
			return
		case found == inProgress:
			http.Error(w, "the first request is still in progress", http.StatusConflict)
			return
		default:
			var s stored
			if failed(w, json.Unmarshal([]byte(found), &s)) {
				return
			}
			s.writeTo(w)
			return
		}
		c := capture{ResponseWriter: header{make(http.Header)}}
		next.ServeHTTP(&c, r)
		s := stored{c.status, c.Header(), c.body}
		data, err := json.Marshal(s)
		if err == nil {
			err = m.client.Set(r.Context(), name, data, retention).Err()
		}
		if failed(w, err) {
			return
		}
		s.writeTo(w)
	})
}

func (s stored) writeTo(w http.ResponseWriter) {
	maps.Copy(w.Header(), s.Header)
	w.WriteHeader(s.Status)
	_, _ = w.Write(s.Body)
}

// header is a writer of which only the header is used.
type header struct{ fields http.Header }

func (h header) Header() http.Header       { return h.fields }
func (header) Write(p []byte) (int, error) { return len(p), nil }
func (header) WriteHeader(int)             {}
