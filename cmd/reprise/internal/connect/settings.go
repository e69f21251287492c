// Package connect makes a store from the operator's settings: flags, and environment
// variables for those that the flags leave out.
package connect

import (
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	repriseredis "github.com/reprise-go/reprise/store/redis"
)

// DefaultTimeout is how long one call of the store may take.
const DefaultTimeout = 10 * time.Second

// Settings say where the records are.
type Settings struct {
	RedisURL       string
	RedisCluster   bool
	SentinelMaster string
	Prefix         string
	Durability     string

	PostgresURL string
	Schema      string
	Table       string
	ServicePool bool // the pool settings in PostgresURL are the service's, to be judged

	Timeout time.Duration

	// Logger gets the reports of the store. Nil discards them, for commands that print
	// their findings themselves.
	Logger *slog.Logger
}

// The environment variables, each with the flag that it replaces and the flag of the URL
// that it belongs to. A password does not belong on a command line, where other users of
// the machine see it.
var environment = []struct{ name, flag, of string }{
	{"REPRISE_REDIS_URL", ofRedis, ofRedis},
	{"REPRISE_REDIS_CLUSTER", "redis-cluster", ofRedis},
	{"REPRISE_REDIS_SENTINEL_MASTER", "redis-sentinel-master", ofRedis},
	{"REPRISE_PREFIX", "prefix", ofRedis},
	{"REPRISE_DURABILITY", "durability", ofRedis},
	{"REPRISE_POSTGRES_URL", ofPostgres, ofPostgres},
	{"REPRISE_SCHEMA", "schema", ofPostgres},
	{"REPRISE_TABLE", "table", ofPostgres},
	{"REPRISE_TIMEOUT", "timeout", ""},
}

const ofRedis, ofPostgres = "redis-url", "postgres-url"

func (s *Settings) logger() *slog.Logger {
	if s.Logger == nil {
		return slog.New(slog.DiscardHandler)
	}
	return s.Logger
}

// Register adds the flags to fs.
func (s *Settings) Register(fs *pflag.FlagSet) {
	fs.StringVar(&s.RedisURL, "redis-url", "", "URL of the Redis store: redis[s]://[user:password@]host:port[/db],\nredis[s]+sentinel://host,host/db?master=NAME or redis[s]+cluster://host,host\n(environment: REPRISE_REDIS_URL)")
	fs.BoolVar(&s.RedisCluster, "redis-cluster", false, "the Redis URL is of a cluster")
	fs.StringVar(&s.SentinelMaster, "redis-sentinel-master", "", "the Redis URL is of sentinels, which call the primary `NAME`")
	fs.StringVar(&s.Prefix, "prefix", "", "prefix of the Redis keys, which names the service, such as orders: (required with Redis)")
	fs.StringVar(&s.Durability, "durability", "", "what the Redis store waits for: async, acked:N or fsynced:N replicas (default async)")
	fs.StringVar(&s.PostgresURL, "postgres-url", "", "URL of the PostgreSQL store: postgres://user@host:port/database\n(environment: REPRISE_POSTGRES_URL, and what libpq reads, such as PGPASSWORD)")
	fs.StringVar(&s.Schema, "schema", "", "PostgreSQL schema of the table (default \"public\")")
	fs.StringVar(&s.Table, "table", "", "PostgreSQL table of the records (default \"reprise_records\")")
	fs.DurationVar(&s.Timeout, "timeout", DefaultTimeout, "how long one call to the store may take; for doctor, all of them together")
}

// Complete takes settings without a flag from the environment. A flag that names one
// store makes the variables of the other irrelevant.
func (s *Settings) Complete(fs *pflag.FlagSet, getenv func(string) string) error {
	other := map[string]string{ofRedis: ofPostgres, ofPostgres: ofRedis}
	for _, e := range environment {
		value := getenv(e.name)
		if value == "" || fs.Changed(e.flag) || fs.Changed(other[e.of]) {
			continue
		}
		if err := fs.Lookup(e.flag).Value.Set(value); err != nil {
			return fmt.Errorf("the environment variable %s has an invalid value", e.name)
		}
	}
	if s.Timeout <= 0 {
		return errors.New("--timeout must be more than 0")
	}
	return nil
}

// durability reads --durability.
func (s *Settings) durability() (repriseredis.Durability, error) {
	name, number, numbered := strings.Cut(s.Durability, ":")
	n, err := strconv.Atoi(number)
	switch {
	case s.Durability == "" || s.Durability == "async":
		return repriseredis.Async(), nil
	case numbered && err == nil && name == "acked":
		return repriseredis.Acked(n), nil
	case numbered && err == nil && name == "fsynced":
		return repriseredis.Fsynced(n), nil
	}
	return repriseredis.Durability{}, errors.New("--durability must be async, acked:N or fsynced:N")
}
