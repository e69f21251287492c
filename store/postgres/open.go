package reprisepg

import (
	"encoding/hex"
	"fmt"
	"strconv"

	"github.com/jackc/pgx/v5"

	reprise "github.com/reprise-go/reprise/core"
)

// clientCheck is how often the server looks whether its client is still there while it
// runs a statement, so that the lock of a process that died is free soon.
const clientCheck = "500ms"

// queueOpen adds the statement that locks and marks the transaction of an attempt.
func (s *TransactionalStore) queueOpen(batch *pgx.Batch, a *attempt, locked *bool) {
	check := clientCheck
	if s.noClientCheck.Load() {
		check = ""
	}
	limit := strconv.FormatInt(s.config.TxTimeout.Milliseconds(), 10) + "ms"
	batch.Queue(openSQL, s.lockKey(a.id), a.mark(), limit, check).QueryRow(func(row pgx.Row) error {
		var marked *string
		err := row.Scan(&marked, nil, nil, nil, nil)
		*locked = marked != nil
		return err
	})
}

// mark is what the transaction of the attempt is recognized by.
func (a *attempt) mark() string { return hex.EncodeToString(a.owner[:]) }

// withoutClientCheck reports, for the failure of a claim's batch, that the server cannot
// look after its clients, because its operating system does not tell.
func (s *TransactionalStore) withoutClientCheck(err error) bool {
	return hasCode(err, codeInvalidSetting) && !s.noClientCheck.Swap(true)
}

// errNoClientCheck says, once, that the claim has to be sent again.
var errNoClientCheck = fmt.Errorf("%w: postgres: claim: the server cannot look after its clients", reprise.ErrUnavailable)

// errStandby refuses what a server in recovery answered.
var errStandby = fmt.Errorf("%w: postgres: claim: the server is a standby, which may be behind", reprise.ErrUnavailable)
