package table

import (
	"testing"

	"github.com/reprise-go/reprise/store/internal/sqlstore"
	"github.com/reprise-go/reprise/store/postgres/internal/pgtest"
)

func TestStatementsNameTheTableAndHaveNoComments(t *testing.T) {
	t.Parallel()
	n := NewNames(Options{Schema: "Own", Options: sqlstore.Options{Table: "keys"}})
	pgtest.CheckStatements(t, newStatements(&n), `"Own"."keys`)
}
