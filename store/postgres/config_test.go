package reprisepg

import (
	"cmp"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/reprise-go/reprise/core/store"
)

func TestConfigDefaults(t *testing.T) {
	t.Parallel()
	c, err := Config{}.options()
	if err != nil {
		t.Fatal(err)
	}
	if c.Table != DefaultTable || c.TxTimeout != time.Minute || c.PurgeEvery != time.Minute || c.Logger == nil {
		t.Errorf("defaults: %+v", c)
	}
}

// TestConfigAtItsBounds: the longest names, and the shortest and the longest transaction
// are accepted, and the shortest pause of the purge. PostgreSQL cuts names of more than
// 63 bytes, and two that were cut could be the same.
func TestConfigAtItsBounds(t *testing.T) {
	t.Parallel()
	for _, c := range []Config{
		{Schema: strings.Repeat("s", 63), Table: strings.Repeat("t", 50), TxTimeout: time.Second},
		{TxTimeout: 24 * time.Hour, PurgeEvery: time.Second},
		{PurgeEvery: -1},
	} {
		o, err := c.options()
		if err != nil {
			t.Errorf("%+v: %v", c, err)
		}
		names := newNames(o.Table, cmp.Or(c.Schema, DefaultSchema))
		for _, name := range append(names.functions, names.migrations) {
			if parts := strings.Split(strings.ReplaceAll(name, `"`, ""), "."); len(parts[len(parts)-1]) > 63 {
				t.Errorf("%s is longer than 63 bytes", name)
			}
		}
	}
}

func TestConfigIsRefusedWhereItCannotWork(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]Config{
		"schema with a dot":     {Schema: "a.b"},
		"schema with a quote":   {Schema: `a"b`},
		"schema too long":       {Schema: strings.Repeat("s", 64)},
		"table with a space":    {Table: "a b"},
		"table with a digit":    {Table: "1a"},
		"table too long":        {Table: strings.Repeat("t", 51)},
		"TxTimeout too short":   {TxTimeout: time.Second - 1},
		"TxTimeout too long":    {TxTimeout: 25 * time.Hour},
		"TxTimeout is negative": {TxTimeout: -time.Second},
		"purge too often":       {PurgeEvery: time.Second - 1},
	} {
		if _, err := c.options(); !errors.Is(err, store.ErrInvalid) {
			t.Errorf("%s: %v, want ErrInvalid", name, err)
		}
		if _, err := Migrations(c); !errors.Is(err, store.ErrInvalid) {
			t.Errorf("%s: Migrations: %v, want ErrInvalid", name, err)
		}
	}
}
