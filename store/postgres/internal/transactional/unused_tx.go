package transactional

import (
	"context"
	"log/slog"
)

// reportUnused logs, at most once a minute, that handlers completed without asking for
// their transactions, because retries repeat whatever such handlers wrote through another
// handle. A claim that was not bound to a context had no handler.
func (s *Store) reportUnused(ctx context.Context, a *attempt) {
	if !a.bound.Load() || a.asked.Load() {
		return
	}
	attempts, due := s.unused.Count()
	if !due {
		return
	}
	remedy := "reprisepg.Tx(ctx)"
	if a.sqlTx != nil {
		remedy = "reprisepg.SQLTx(ctx)"
	}
	s.table.Options.Logger.LogAttrs(ctx, slog.LevelWarn,
		"reprisepg: handlers completed without asking for their transactions, so retries repeat what they write through another handle. "+
			"Write through "+remedy+", or serve routes without effects in this database from the leased store",
		slog.Int("attempts", attempts), slog.String("label", a.policy.Label))
}
