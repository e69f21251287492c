package reprisepg

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/reprise-go/reprise/core/store"
)

// TestLongestNamesFit: PostgreSQL cuts names of more than 63 bytes, and two that were cut
// could be the same.
func TestLongestNamesFit(t *testing.T) {
	t.Parallel()
	c := Config{Schema: strings.Repeat("s", 63), Table: strings.Repeat("t", 50)}
	names, _, err := c.options()
	if err != nil {
		t.Error(err)
	}
	for _, name := range append(names.functions, names.migrations) {
		if parts := strings.Split(strings.ReplaceAll(name, `"`, ""), "."); len(parts[len(parts)-1]) > 63 {
			t.Errorf("%s is longer than 63 bytes", name)
		}
	}
}

func TestConfigIsRefusedWhereItCannotWork(t *testing.T) {
	t.Parallel()
	for _, c := range []Config{
		{Schema: "a.b"}, {Schema: `a"b`}, {Schema: strings.Repeat("s", 64)}, {Table: "a b"}, {TxTimeout: 1}, {PurgeEvery: time.Second - 1},
	} {
		if _, err := Migrations(c); !errors.Is(err, store.ErrInvalid) {
			t.Errorf("%+v: %v, want ErrInvalid", c, err)
		}
	}
}
