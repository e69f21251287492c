// Package connect makes a store from the operator's settings: flags, and environment
// variables for those that the flags leave out.
package connect

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
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
	URL         string
	Prefix      string
	Durability  string
	Schema      string
	Table       string
	ServicePool bool // the pool settings in a URL of PostgreSQL are the service's, to be judged

	Timeout time.Duration

	// Logger gets the reports of the store. Nil discards them, for commands that print
	// their findings themselves.
	Logger *slog.Logger
}

// options are the flags with the environment variable that replaces each, and the stores
// that have them; none is all. A password does not belong on a command line, where
// other users of the machine see it.
var options = []struct {
	flag, variable string
	kinds          []Kind
}{
	{"store", "REPRISE_STORE", nil},
	{"prefix", "REPRISE_PREFIX", []Kind{Redis, Etcd}},
	{"durability", "REPRISE_DURABILITY", []Kind{Redis}},
	{"schema", "REPRISE_SCHEMA", []Kind{Postgres}},
	{"table", "REPRISE_TABLE", []Kind{Postgres, MySQL, SQLite}},
	{"service-pool", "", []Kind{Postgres}},
	{"timeout", "REPRISE_TIMEOUT", nil},
}

func (s *Settings) logger() *slog.Logger {
	if s.Logger == nil {
		return slog.New(slog.DiscardHandler)
	}
	return s.Logger
}

// Register adds the flags to fs.
func (s *Settings) Register(fs *pflag.FlagSet) {
	fs.SortFlags = false
	fs.StringVar(&s.URL, "store", "", "`URL` of the store, or REPRISE_STORE: redis[s]://[user:password@]host:port[/db],\nredis[s]+sentinel://host,host/db?master=NAME, redis[s]+cluster://host,host,\npostgres://user@host:port/database (and what libpq reads, such as PGPASSWORD),\nmysql://user:password@host:port/database for MariaDB too, sqlite:FILE,\nor etcd[s]://[user:password@]host:port,host:port")
	fs.StringVar(&s.Prefix, "prefix", "", "prefix of the keys in Redis or etcd, which names the service, such as orders:")
	fs.StringVar(&s.Durability, "durability", "", "what a Redis store waits for: async, acked:N or fsynced:N replicas (default async)")
	fs.StringVar(&s.Schema, "schema", "", "PostgreSQL schema of the table (default \"public\")")
	fs.StringVar(&s.Table, "table", "", "table of the records in a database (default \"reprise_records\")")
	fs.DurationVar(&s.Timeout, "timeout", DefaultTimeout, "how long one call to the store may take; for doctor, all of them together")
}

// Complete takes settings without a flag from the environment, but those that the kind of
// the store has not. Their flags are an error.
func (s *Settings) Complete(fs *pflag.FlagSet, getenv func(string) string) error {
	for _, o := range options {
		kind, _ := KindOf(s.URL)
		others := kind != 0 && len(o.kinds) > 0 && !slices.Contains(o.kinds, kind)
		changed, value := fs.Changed(o.flag), ""
		if o.variable != "" {
			value = getenv(o.variable)
		}
		switch {
		case changed && others:
			return fmt.Errorf("--%s is not for a store in %v", o.flag, kind)
		case changed || others || value == "":
		case fs.Lookup(o.flag).Value.Set(value) != nil:
			return fmt.Errorf("the environment variable %s has an invalid value", o.variable)
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
