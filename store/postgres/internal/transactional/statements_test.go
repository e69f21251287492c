package transactional

import (
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/reprise-go/reprise/store/postgres/internal/pgtest"
	"github.com/reprise-go/reprise/store/postgres/internal/table"
)

func TestStatementsNameTheTableAndHaveNoComments(t *testing.T) {
	t.Parallel()
	n := table.NewNames(table.Options{Schema: "Own", Table: "keys"})
	pgtest.CheckStatements(t, newStatements(&n, pgx.ReadCommitted), `"Own"."keys`)
}
