package sqlstore

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/internal/slots"
)

// Transactional is the store that runs each attempt in one transaction. The claim writes
// the record there, invisible to other transactions, and sets a savepoint. Then the
// handler writes, and the completion commits both together or neither.
type Transactional struct {
	*Table

	begin   Beginner
	slots   *slots.Slots
	timeout time.Duration

	mu       sync.Mutex
	attempts map[store.Owner]*attempt
	running  map[store.ID]*attempt
	doubts   map[store.Owner]time.Time // owners whose commit may or may not have been executed, and since when
}

// A Beginner begins the transactions of attempts.
type Beginner interface {
	// Begin begins a transaction in which the record of id can be written, even if there is
	// none yet, and excludes every other attempt on it. The error is ErrBusy if ctx ended
	// first, or [ErrHeld].
	Begin(ctx context.Context, op string, id store.ID) (*Tx, error)
}

// ErrHeld says that another transaction holds the record.
var ErrHeld = errors.New("another transaction holds the record")

// NewTransactional returns the transactional store over t. If attempts exclude other
// writers, the writer of t has to take a slot as attempts do: see [Slotted].
func NewTransactional(t *Table, begin Beginner, s *slots.Slots, timeout time.Duration) *Transactional {
	return &Transactional{
		Table: t, begin: begin, slots: s, timeout: timeout,
		attempts: make(map[store.Owner]*attempt), running: make(map[store.ID]*attempt), doubts: make(map[store.Owner]time.Time),
	}
}

// Renew extends the leases of leased records in the same table. An attempt of this store
// has no lease, and is Renewed while it runs in this process.
func (s *Transactional) Renew(ctx context.Context, rs []store.RenewRequest) ([]store.RenewStatus, error) {
	statuses := make([]store.RenewStatus, len(rs))
	var (
		others []store.RenewRequest
		at     []int
	)
	for i := range rs {
		if s.find(rs[i].ID, rs[i].Owner) != nil && rs[i].Validate() == nil {
			statuses[i] = store.Renewed
			continue
		}
		others, at = append(others, rs[i]), append(at, i)
	}
	renewed, err := s.Table.Renew(ctx, others)
	if err != nil || len(rs) == 0 {
		return nil, err
	}
	for i, status := range renewed {
		statuses[at[i]] = status
	}
	return statuses, nil
}
