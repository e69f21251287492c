package table

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/reprise-go/reprise/store/internal/sqlstore"
)

// Prove checks st, and tries every operation of it on a new record: the catalogue does
// not show the effects of policies of row-level security, triggers and missing functions.
func (t *Table) Prove(ctx context.Context, st sqlstore.Checked) error {
	if err := t.Table.Prove(ctx, st, t.Options.Accept...); err != nil {
		return fmt.Errorf("%w%s", err, t.rowSecurityAdvice(ctx))
	}
	return nil
}

// rowSecurityAdvice returns the remedy if row-level security applies to this role.
func (t *Table) rowSecurityAdvice(ctx context.Context) string {
	var (
		active bool
		role   string
	)
	err := t.query(ctx, "SELECT row_security_active($1::text::regclass), current_user::text", []any{t.Names.records}, &active, &role)
	if err != nil || !active {
		return ""
	}
	return fmt.Sprintf("; row-level security applies to this role: CREATE POLICY reprise ON %s TO %s USING (true) WITH CHECK (true)",
		t.Names.records, pgx.Identifier{role}.Sanitize())
}
