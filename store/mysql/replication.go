package reprisemysql

import (
	"context"
	"database/sql"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/internal/sqlstore"
)

const (
	semiSyncVariables = "SHOW GLOBAL VARIABLES LIKE 'rpl\\_semi\\_sync\\_%'"
	leastSemiSync     = time.Hour
)

// addSemiSync adds findings about a primary that waits for its replicas, but whose
// settings let it acknowledge, or show to others, a commit that no replica has.
func addSemiSync(ctx context.Context, db *sql.DB, list *sqlstore.Findings) error {
	rows, err := db.QueryContext(ctx, semiSyncVariables)
	if err != nil {
		return err
	}
	defer rows.Close()
	values := map[string]string{} // by the end of the name: its start depends on the version
	for rows.Next() {
		var name, value string
		if err := rows.Scan(&name, &value); err != nil {
			return err
		}
		for _, primary := range []string{"rpl_semi_sync_master_", "rpl_semi_sync_source_"} {
			if variable, ok := strings.CutPrefix(name, primary); ok {
				values[variable] = value
			}
		}
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil || values["enabled"] != "ON" {
		return err
	}
	ms, err := strconv.ParseInt(values["timeout"], 10, 64)
	list.Add(err == nil && ms < leastSemiSync.Milliseconds(), "semi-sync", store.Warning, "the server waits %d ms for a replica, and from then on acknowledges commits that no replica has, "+
		"so after a failover their operations can run again; set rpl_semi_sync_master_timeout (rpl_semi_sync_source_timeout) to %d or more", ms, leastSemiSync.Milliseconds())
	list.Add(values["wait_point"] == "AFTER_COMMIT", "semi-sync", store.Warning, "the server shows a response to other sessions before a replica has it, so it can be replayed and then be lost; "+
		"set rpl_semi_sync_master_wait_point (rpl_semi_sync_source_wait_point) to AFTER_SYNC")
	return nil
}
