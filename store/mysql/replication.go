package reprisemysql

import (
	"context"
	"database/sql"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/reprise-go/reprise/core/store"
)

const (
	findingSemiSync   = "semi-sync"
	semiSyncVariables = "SHOW GLOBAL VARIABLES LIKE 'rpl\\_semi\\_sync\\_%'"
	leastSemiSync     = time.Hour
)

// addSemiSync adds the settings by which a primary that waits for its replicas
// acknowledges, or shows to others, a commit that no replica has.
func (l *findings) addSemiSync(ctx context.Context, db *sql.DB) error {
	rows, err := db.QueryContext(ctx, semiSyncVariables)
	if err != nil {
		return err
	}
	defer rows.Close()
	values := map[string]string{} // without the beginning of their names, which versions differ in
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
	if ms, err := strconv.ParseInt(values["timeout"], 10, 64); err == nil && ms < leastSemiSync.Milliseconds() {
		l.add(findingSemiSync, store.Warning, "the server waits for a replica for %d ms, and acknowledges commits that none has from then on, "+
			"so a failover can run their keys again; set rpl_semi_sync_master_timeout (rpl_semi_sync_source_timeout) to %d or more", ms, leastSemiSync.Milliseconds())
	}
	if values["wait_point"] == "AFTER_COMMIT" {
		l.add(findingSemiSync, store.Warning, "the server shows a response to others before a replica has it, so it can be replayed and lost; "+
			"set rpl_semi_sync_master_wait_point (rpl_semi_sync_source_wait_point) to AFTER_SYNC")
	}
	return nil
}
