package reprisepg

import (
	"testing"

	"github.com/jackc/pgx/v5"
)

func TestObserveNoticesConfiguresEachConnection(t *testing.T) {
	t.Parallel()
	c, err := pgx.ParseConfig("postgres://nobody@127.0.0.1:1/nothing")
	if err != nil {
		t.Fatal(err)
	}
	ObserveNotices(c)
	if c.AfterConnect == nil || c.OnNotice == nil {
		t.Error("the configuration has no hooks")
	}
}
