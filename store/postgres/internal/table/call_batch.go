package table

import (
	"bytes"
	"slices"
	"sync"
	"time"

	"github.com/reprise-go/reprise/store/internal/batching"
	"github.com/reprise-go/reprise/store/internal/record"
	"github.com/reprise-go/reprise/store/postgres/internal/wire"
)

// callBatch is a batch of claims and completions, its parameters and its answers.
type callBatch struct {
	claims, completes members
	memory            []byte // of the parameters
}

// members are the claims, or the completions, of a batch, ordered by ID, so that batches
// of several processes never deadlock. Each ID occurs once, because the result of a
// second call would depend on the first.
type members struct {
	calls  []batching.Sent[queuedCall]
	ends   []error // of each call; errAlone until it has an answer
	values [][]byte
}

var callBatches = sync.Pool{New: func() any { return new(callBatch) }}

// newCallBatch returns the batch of calls. It finishes those that do not fit into it,
// with errAlone.
func newCallBatch(calls []batching.Sent[queuedCall]) *callBatch {
	b := callBatches.Get().(*callBatch) //nolint:forcetypeassert // the pool holds only these
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

// release returns the memory of b to the pool. All its calls must have been finished.
func (b *callBatch) release() {
	for _, m := range []*members{&b.claims, &b.completes} {
		clear(m.calls)
		clear(m.values)
		m.calls, m.ends, m.values = m.calls[:0], m.ends[:0], m.values[:0]
	}
	if cap(b.memory) > 2*batching.DefaultMaxBytes {
		b.memory = nil
	}
	callBatches.Put(b)
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
	clear(m.calls[len(kept):])
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
func (b *callBatch) statements(sql *statements, replays bool) []wire.Call {
	b.claims.forget()
	b.completes.forget()
	b.memory = b.memory[:0]
	list := make([]wire.Call, 0, 2)
	if len(b.claims.calls) > 0 {
		b.encodeClaims()
		b.claims.values = append(b.claims.values, wire.BinaryBool(replays))
		list = append(list, sql.claims.Call(b.readClaim, b.claims.values...))
	}
	if len(b.completes.calls) > 0 {
		b.encodeCompletes()
		list = append(list, sql.completes.Call(b.readCompleted, b.completes.values...))
	}
	return list
}

// encodeClaims writes the parameters of claims.sql.
func (b *callBatch) encodeClaims() {
	m := &b.claims
	m.values = m.values[:0]
	b.encode(m, wire.OIDBytea, func(to []byte, v *queuedCall) []byte { return wire.AppendElement(to, v.claim.ID[:]) })
	b.encode(m, wire.OIDBytea, func(to []byte, v *queuedCall) []byte { return wire.AppendElement(to, v.claim.Owner[:]) })
	b.encode(m, wire.OIDBytea, func(to []byte, v *queuedCall) []byte { return wire.AppendElement(to, v.claim.Fingerprint[:]) })
	b.encodeSpan(m, func(v *queuedCall) time.Duration { return v.claim.Lease })
	b.encodeSpan(m, func(v *queuedCall) time.Duration { return v.claim.Retention })
	b.encodeSpan(m, func(v *queuedCall) time.Duration { return v.claim.Horizon })
	b.encodeText(m, func(v *queuedCall) string { return v.claim.Label })
	b.encode(m, wire.OIDInt2, func(to []byte, v *queuedCall) []byte {
		return wire.AppendInt2(wire.AppendLength(to, 2), flag(v.claim.AtMostOnce))
	})
	b.encodeText(m, func(v *queuedCall) string { return v.claim.Description })
}

// encodeCompletes writes the parameters of completes.sql.
func (b *callBatch) encodeCompletes() {
	m := &b.completes
	m.values = m.values[:0]
	b.encode(m, wire.OIDBytea, func(to []byte, v *queuedCall) []byte { return wire.AppendElement(to, v.complete.ID[:]) })
	b.encode(m, wire.OIDBytea, func(to []byte, v *queuedCall) []byte { return wire.AppendElement(to, v.complete.Owner[:]) })
	b.encode(m, wire.OIDBytea, func(to []byte, v *queuedCall) []byte { return wire.AppendElement(to, v.complete.Payload) })
	b.encodeSpan(m, func(v *queuedCall) time.Duration { return v.complete.Retention })
	b.encodeSpan(m, func(v *queuedCall) time.Duration { return v.complete.Horizon })
}

// encodeSpan appends an array with a duration of every call, in µs.
func (b *callBatch) encodeSpan(m *members, span func(*queuedCall) time.Duration) {
	b.encode(m, wire.OIDInt8, func(to []byte, v *queuedCall) []byte {
		return wire.AppendInt8(wire.AppendLength(to, 8), span(v).Microseconds())
	})
}

// encodeText appends an array with a text of every call.
func (b *callBatch) encodeText(m *members, text func(*queuedCall) string) {
	b.encode(m, wire.OIDText, func(to []byte, v *queuedCall) []byte {
		return append(wire.AppendLength(to, len(text(v))), text(v)...)
	})
}

// encode appends an array with an element of every call to the parameters of m. If
// b.memory has to grow, earlier parameters still refer to the old memory.
func (b *callBatch) encode(m *members, element uint32, appendTo func([]byte, *queuedCall) []byte) {
	start := len(b.memory)
	b.memory = wire.AppendArray(b.memory, element, len(m.calls))
	for _, c := range m.calls {
		b.memory = appendTo(b.memory, c.Value())
	}
	m.values = append(m.values, b.memory[start:len(b.memory):len(b.memory)])
}

// readClaim reads a row of claims.sql: a record that existed, or one that the batch
// created. Another process may have created a record of the same ID, so the claim was
// granted only if the record has its owner. If there is a row of each kind for an ID, the
// old record was released or purged in between, and the created one counts.
func (b *callBatch) readClaim(row *wire.Row) {
	v, at, ok := b.claims.find(row.Bytes())
	if !ok || len(row.Columns) != 12 {
		row.Err = wire.ErrRow
		return
	}
	there := row.Columns[0] != nil
	if there && b.claims.ends[at] == nil {
		return // created by this batch, and then seen
	}
	var found record.Seen
	found.Version, found.State = row.Smallint(), row.Smallint()
	found.Owner, found.Fingerprint = row.Bytes(), row.Bytes()
	found.Attempt, found.Fence = row.Integer(), row.Bigint()
	found.LeaseUntil, found.ValidUntil = row.Bigint(), row.Bigint()
	found.At = row.Bigint()
	found.Clock = found.At
	found.AtMostOnce = row.Smallint() != 0
	size := row.Bytes()
	found.Payload = row.Bytes()
	if !there {
		v.result = granted(found.Attempt, found.Fence, found.LeaseUntil-found.At)
		if b.claims.ends[at] = nil; !bytes.Equal(found.Owner, v.claim.Owner[:]) {
			b.claims.ends[at] = errAlone
		}
		return
	}
	if size != nil && found.Payload == nil {
		return // too large for a batch
	}
	found.Found = true
	d := found.Decide(&v.claim)
	if d.Rewrites() {
		return
	}
	d.Payload = bytes.Clone(d.Payload)
	v.result, b.claims.ends[at] = d.Result(Name)
}

// readCompleted reads a row of completes.sql.
func (b *callBatch) readCompleted(row *wire.Row) {
	v, at, ok := b.completes.find(row.Bytes())
	if !ok {
		row.Err = wire.ErrRow
		return
	}
	if owner := row.Bytes(); bytes.Equal(owner, v.complete.Owner[:]) {
		b.completes.ends[at] = nil
	}
}
