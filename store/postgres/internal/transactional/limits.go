package transactional

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/postgres/internal/wire"
)

// clientCheck is how often the server checks, while it runs a statement, that its client
// is still connected, so that the lock of a process that died is free soon.
const clientCheck = "500ms"

// addOpen adds the statements that lock and bound the transaction of an attempt. They set
// locked if the lock was free, and process to the process ID of the session.
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

// limitsTransactions reports whether a server of this version, such as 17.2 (Debian …) or
// 18beta1, has transaction_timeout. Asking the server would cost as much as setting it.
func limitsTransactions(version string) bool {
	digits := len(version) - len(strings.TrimLeft(version, "0123456789"))
	major, err := strconv.Atoi(version[:digits])
	return err == nil && major >= 17
}

// adapts reports whether the failure of a claim's statements makes the store do without
// client_connection_check_interval from now on. The claim then has to be sent again; no
// statement was executed.
func (s *Store) adapts(err error) bool {
	// The server's operating system does not support the check of clients.
	return wire.HasCode(err, wire.CodeInvalidSetting) && !s.noClientCheck.Swap(true)
}

// errAdapted says that the claim has to be sent again.
var errAdapted = fmt.Errorf("%w: postgres: claim: the server or a pooler lacks a feature that the store asked for", store.ErrUnavailable)

// errStandby refuses the answer of a server in recovery.
var errStandby = fmt.Errorf("%w: postgres: claim: the server is a standby, which may lag behind; connect to the primary", store.ErrUnavailable)
