package transactional

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/postgres/internal/wire"
)

// clientCheck is how often the server looks whether its client is still there while it
// runs a statement, so that the lock of a process that died is free soon.
const clientCheck = "500ms"

// addOpen adds the statements that lock and bound the transaction of an attempt. locked
// says whether the lock was free, process which session it is.
func (s *Store) addOpen(b *steps, a *attempt, locked *bool, process *uint32) {
	check := clientCheck
	if s.noClientCheck.Load() {
		check = ""
	}
	limit := strconv.FormatInt(s.table.Options.TxTimeout.Milliseconds(), 10) + "ms"
	b.add(s.statements.open, func(row *wire.Row) {
		*locked = row.Boolean()
		*process = uint32(row.Integer()) //nolint:gosec // its bits
	}, wire.AppendInt8(nil, s.lockKey(a.id)), []byte(limit), []byte(check))
	if a.limits {
		b.add(s.statements.limit, nil, []byte(limit))
	}
}

// limitsTransactions reports whether a server of a version, such as 17.2 (Debian …) or
// 18beta1, has transaction_timeout. To ask one that does not for it costs as much as to
// set it.
func limitsTransactions(version string) bool {
	digits := len(version) - len(strings.TrimLeft(version, "0123456789"))
	major, err := strconv.Atoi(version[:digits])
	return err == nil && major >= 17
}

// adapts reports, for the failure of a claim's statements, that the store does without
// something from now on, and that the claim has to be sent again. No statement was
// executed.
func (s *Store) adapts(err error) bool {
	// The server's operating system does not tell about its clients.
	return wire.HasCode(err, wire.CodeInvalidSetting) && !s.noClientCheck.Swap(true)
}

// errAdapted says that the claim has to be sent again.
var errAdapted = fmt.Errorf("%w: postgres: claim: the server or a pooler cannot do what was asked", store.ErrUnavailable)

// errStandby refuses the answer of a server in recovery.
var errStandby = fmt.Errorf("%w: postgres: claim: the server is a standby, which may be behind", store.ErrUnavailable)
