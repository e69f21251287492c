package sqlstore

import (
	"cmp"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/reprise-go/reprise/core/store"
)

// TestOptionsAreFilled: up to the longest name, the shortest and the longest transaction,
// and the shortest pause of the purge, or none.
func TestOptionsAreFilled(t *testing.T) {
	t.Parallel()
	for _, o := range []Options{
		{}, {Table: strings.Repeat("t", 50), TxTimeout: time.Second}, {TxTimeout: 24 * time.Hour, PurgeEvery: time.Second}, {PurgeEvery: -1},
	} {
		got, err := Fill("db", o)
		if err != nil || got.Table != cmp.Or(o.Table, DefaultTable) || got.TxTimeout != cmp.Or(o.TxTimeout, time.Minute) ||
			got.PurgeEvery != cmp.Or(o.PurgeEvery, time.Minute) || got.Logger == nil {
			t.Errorf("%+v is filled to %+v, %v", o, got, err)
		}
	}
}

// TestOptionsThatCannotWorkAreRefused: by the name of the first, and so is no database.
func TestOptionsThatCannotWorkAreRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		Options
		want string
	}{
		{Options{Table: "a b"}, "Config.Table"},
		{Options{Table: `a"b`}, "Config.Table"},
		{Options{Table: "a`b"}, "Config.Table"},
		{Options{Table: "1a"}, "Config.Table"},
		{Options{Table: strings.Repeat("t", 51)}, "Config.Table"},
		{Options{TxTimeout: time.Second - 1}, "Config.TxTimeout"},
		{Options{TxTimeout: 24*time.Hour + 1}, "Config.TxTimeout"},
		{Options{TxTimeout: -time.Second}, "Config.TxTimeout"},
		{Options{PurgeEvery: time.Second - 1}, "Config.PurgeEvery"},
		{Options{}, "*sql.DB is nil"},
	} {
		d := &Dialect{Name: "db"}
		if _, err := d.New(nil, c.Options); !errors.Is(err, store.ErrInvalid) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("New with %+v: %v, want ErrInvalid with %s", c.Options, err, c.want)
		}
	}
}
