package reprisepg

import (
	"bytes"
	"slices"
	"time"

	"github.com/reprise-go/reprise/store/internal/batching"
	"github.com/reprise-go/reprise/store/internal/sqlstore"
)

// callBatch is a batch of claims and completions, and its answers.
type callBatch struct{ claims, completes members }

// members are the claims, or the completions, of a batch, ordered by ID, so that batches
// of several processes never deadlock. Each ID occurs once, because the result of a
// second call would depend on the first.
type members struct {
	calls []batching.Sent[queuedCall]
	ends  []error // of each call; errAlone until it has an answer
}

// newCallBatch returns the batch of calls. It finishes those that do not fit into it,
// with errAlone.
func newCallBatch(calls []batching.Sent[queuedCall]) *callBatch {
	b := &callBatch{}
	for _, c := range calls {
		m := &b.claims
		if c.Value().completes {
			m = &b.completes
		}
		m.calls = append(m.calls, c)
	}
	b.claims.sort()
	b.completes.sort()
	return b
}

// sort orders the calls by ID, and finishes a second call of the same ID with errAlone.
func (m *members) sort() {
	slices.SortStableFunc(m.calls, func(x, y batching.Sent[queuedCall]) int {
		return bytes.Compare(x.Value().id()[:], y.Value().id()[:])
	})
	kept := m.calls[:0]
	for _, c := range m.calls {
		if len(kept) > 0 && *kept[len(kept)-1].Value().id() == *c.Value().id() {
			c.Finish(errAlone)
			continue
		}
		kept = append(kept, c)
	}
	m.calls = kept
	m.forget()
}

// forget clears the answers of all calls.
func (m *members) forget() {
	m.ends = m.ends[:0]
	for range m.calls {
		m.ends = append(m.ends, errAlone)
	}
}

// find returns the call with an ID, and its index.
func (m *members) find(id []byte) (v *queuedCall, at int, found bool) {
	at, found = slices.BinarySearchFunc(m.calls, id, func(c batching.Sent[queuedCall], id []byte) int {
		return bytes.Compare(c.Value().id()[:], id)
	})
	if found {
		v = m.calls[at].Value()
	}
	return v, at, found
}

// finish finishes every call: with err if that is not nil, otherwise with its own result.
func (b *callBatch) finish(err error) {
	for _, m := range []*members{&b.claims, &b.completes} {
		for i, c := range m.calls {
			if err != nil {
				m.ends[i] = err
			}
			c.Finish(m.ends[i])
		}
	}
}

// statements returns the calls of the functions for b. Claims come first: they create
// rows, and so lock none for which a completion of another batch could wait.
//
// If replays is true, the function claims reads before it creates, which saves work while
// replays are common.
//
// Earlier answers are cleared: a batch that is sent again was undone,
// and a record that it created may be another owner's by now.
func (b *callBatch) statements(sql *statements, replays bool) []statementCall {
	b.claims.forget()
	b.completes.forget()
	list := make([]statementCall, 0, 2)
	if m := &b.claims; len(m.calls) > 0 {
		list = append(list, statementCall{sql.claims, []any{
			array(m, func(v *queuedCall) []byte { return v.claim.ID[:] }),
			array(m, func(v *queuedCall) []byte { return v.claim.Owner[:] }),
			array(m, func(v *queuedCall) []byte { return v.claim.Fingerprint[:] }),
			array(m, func(v *queuedCall) int64 { return v.claim.Lease.Microseconds() }),
			array(m, func(v *queuedCall) int64 { return v.claim.Retention.Microseconds() }),
			array(m, func(v *queuedCall) int64 { return v.claim.Horizon.Microseconds() }),
			array(m, func(v *queuedCall) string { return v.claim.Label }),
			array(m, func(v *queuedCall) int16 { return flag(v.claim.AtMostOnce) }),
			array(m, func(v *queuedCall) string { return v.claim.Description }),
			replays,
		}, b.readClaim})
	}
	if m := &b.completes; len(m.calls) > 0 {
		list = append(list, statementCall{sql.completes, []any{
			array(m, func(v *queuedCall) []byte { return v.complete.ID[:] }),
			array(m, func(v *queuedCall) []byte { return v.complete.Owner[:] }),
			array(m, func(v *queuedCall) []byte { return payloadOf(&v.complete) }),
			array(m, func(v *queuedCall) int64 { return v.complete.Retention.Microseconds() }),
			array(m, func(v *queuedCall) int64 { return v.complete.Horizon.Microseconds() }),
		}, b.readCompleted})
	}
	return list
}

// array returns a parameter of every call.
func array[T any](m *members, of func(*queuedCall) T) []T {
	list := make([]T, len(m.calls))
	for i, c := range m.calls {
		list[i] = of(c.Value())
	}
	return list
}

// readClaim reads a row of claims.sql: a record that existed, or one that the batch
// created. If there is a row of each kind for an ID, the old record was released or
// purged in between, and the created one counts.
func (b *callBatch) readClaim(row sqlstore.Row) error {
	var (
		id             []byte
		large, created bool // a payload that is too large for a batch
		found          sqlstore.Seen
	)
	if err := scanSeen(row, &found, &id, &large, &created); err != nil {
		return err
	}
	v, at, ok := b.claims.find(id)
	switch {
	case !ok:
		return errRow
	case created:
		v.result, b.claims.ends[at] = sqlstore.Granted(found.Attempt, found.Fence, time.Duration(found.LeaseUntil-found.At)*time.Microsecond), nil
	case !large: // one that this batch created, and then saw, runs
		if result, answered, err := found.Answer(storeName, &v.claim); answered {
			v.result, b.claims.ends[at] = result, err
		}
	}
	return nil
}

// readCompleted reads a row of completes.sql.
func (b *callBatch) readCompleted(row sqlstore.Row) error {
	var id, owner []byte
	if err := row.Scan(&id, &owner); err != nil {
		return err
	}
	v, at, ok := b.completes.find(id)
	switch {
	case !ok:
		return errRow
	case bytes.Equal(owner, v.complete.Owner[:]):
		b.completes.ends[at] = nil
	}
	return nil
}
