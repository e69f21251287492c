package connect

import (
	"errors"
	"strings"
)

// Kind is the server of a store.
type Kind uint8

// The kinds of stores.
const (
	Redis Kind = iota + 1
	Postgres
	MySQL
	SQLite
	Etcd
)

var kindNames = [...]string{Redis: "redis", Postgres: "postgres", MySQL: "mysql", SQLite: "sqlite", Etcd: "etcd"}

// String returns the kind in lower case.
func (k Kind) String() string { return kindNames[k] }

var schemes = map[string]Kind{
	"redis": Redis, "rediss": Redis, "postgres": Postgres, "postgresql": Postgres, "mysql": MySQL, "mariadb": MySQL, "sqlite": SQLite,
	"etcd": Etcd, "etcds": Etcd,
}

// KindOf returns the kind of the store at a URL. The error does not quote it.
func KindOf(url string) (Kind, error) {
	if url == "" {
		return 0, errors.New("no store: pass --store, or set REPRISE_STORE")
	}
	scheme, _, _ := strings.Cut(url, ":")
	scheme, _, _ = strings.Cut(scheme, "+")
	if kind := schemes[scheme]; kind != 0 {
		return kind, nil
	}
	return 0, errors.New("--store is not a URL that begins with redis, rediss, postgres, postgresql, mysql, mariadb, sqlite, etcd or etcds")
}
