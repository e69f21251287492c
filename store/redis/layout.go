package repriseredis

import (
	"encoding/binary"
	"errors"
	"math"
	"time"

	"github.com/reprise-go/reprise/core/store"
)

// The first byte of a record: the version of the layout, 2, in the high half and the kind
// in the low one. See lua/record.lua.
const (
	recordClaimed        = 0x21 // in progress, by a first attempt, and nobody watches
	recordClaimedLater   = 0x22 // in progress, by a later attempt or watched
	recordCompleted      = 0x23
	recordCompletedLater = 0x24 // completed by a later attempt or by an operator
	recordForgotten      = 0x25 // no record but its fence, for some milliseconds
)

// The sizes of the parts of a record, in bytes.
const (
	claimHead     = 1 + 16 + 32 + 8 + 8     // before the label, with its length byte
	laterPart     = 4 + 8                   // between them, of recordClaimedLater
	completedHead = 1 + 16 + 32 + 7 + 7 + 4 // before the label
	resolvedPart  = 4 + 6 + 1               // behind the label, of recordCompletedLater
	forgottenSize = 1 + 8
)

// The first byte of a script's answer; numbers follow big-endian, durations in
// microseconds, instants in microseconds or, where it says so, in milliseconds. A replay
// is the record itself.
const (
	tagCorrupt    = '!' // any script: the record cannot be read
	tagClaimed    = '+' // claim: attempt u32, fence u64, remaining i64
	tagStillMine  = '=' // claim: the same, for the caller's own lapsed claim; nothing was written
	tagInProgress = 'P' // claim: remaining i64
	tagMismatch   = 'M' // claim
	tagLapsed     = 'L' // claim
	tagValid      = 'V' // claim that asks for it: validity i64, the completed record
	tagFinished   = 'F' // renew: completed by the caller
	tagLost       = 'X' // renew, complete
	tagDone       = 'D' // complete
	tagChanged    = 'W' // renew, release, resolve: written
	tagRecord     = 'R' // inspect: see parseView
	tagUnreadable = 'U' // inspect: validity i64, size u64
	tagNone       = 'N' // release, inspect, resolve: no such record
)

// The flags of a claim.
const (
	flagTakeover = 1 << iota
	flagWaiting
	flagValidity
)

// maxFixed is the size in bytes of the largest fixed arguments of a script, which are
// those of a completion: the start of the claim, and the completed record up to its
// label, included.
const maxFixed = (1 + 16) + completedHead + 1 + store.MaxLabel

// wrote reports whether a script that answers with tag has written.
func wrote(tag byte) bool { return tag == tagClaimed || tag == tagDone || tag == tagChanged }

// claimSpan returns how long after its claim the key of a record in progress expires, in
// milliseconds: the scripts compute the instant of the claim from it. A key is seen until
// the end of the millisecond in which it expires, and was set at some time of the one
// that it counts from. So a lease or a validity may end a millisecond early, and none
// ends late but that of a single millisecond.
func claimSpan(lease, retention time.Duration) int64 { return completedSpan(max(lease, retention)) }

// completedSpan is claimSpan for a completed record.
func completedSpan(retention time.Duration) int64 { return max(1, millis(retention)-1) }

// millis returns the microseconds of d as milliseconds, rounded up.
func millis(d time.Duration) int64 { return (d.Microseconds() + 999) / 1000 }

// fenceAt returns the fence of a first attempt that began in a millisecond of the
// server's clock: the last microsecond of it, so that a later claim in the same
// millisecond has no lower one.
func fenceAt(began int64) uint64 { return uint64(began)*1000 + 999 } //nolint:gosec // checked: positive

// appendMicros appends a duration as the scripts read it.
func appendMicros(b []byte, d time.Duration) []byte {
	return binary.BigEndian.AppendUint64(b, uint64(d.Microseconds())) //nolint:gosec // validated: never negative
}

// appendUint56 appends a number in seven bytes.
func appendUint56(b []byte, n uint64) []byte {
	var all [8]byte
	binary.BigEndian.PutUint64(all[:], n)
	return append(b, all[1:]...)
}

func appendLabel(b []byte, label string) []byte {
	return append(append(b, byte(len(label))), label...) //nolint:gosec // validated: at most MaxLabel
}

// appendClaimRecord appends the record of a first attempt.
func appendClaimRecord(b []byte, r *store.ClaimRequest) []byte {
	b = append(append(append(b, recordClaimed), r.Owner[:]...), r.Fingerprint[:]...)
	return appendLabel(appendMicros(appendMicros(b, r.Lease), r.Retention), r.Label)
}

// appendClaim appends the fixed argument of claim.lua.
func appendClaim(b []byte, r *store.ClaimRequest) []byte {
	b = append(append(b, r.Owner[:]...), r.Fingerprint[:]...)
	b = appendMicros(appendMicros(b, r.Lease), r.Retention)
	var flags byte
	if r.Takeover {
		flags |= flagTakeover
	}
	if r.Waiting {
		flags |= flagWaiting
	}
	if r.Validity {
		flags |= flagValidity
	}
	b = append(b, flags)
	b = binary.BigEndian.AppendUint32(b, uint32(min(r.MaxAttempts, math.MaxUint32))) //nolint:gosec // bounded here
	return appendLabel(b, r.Label)
}

// appendOwned appends the fixed argument of renew.lua.
func appendOwned(b []byte, owner store.Owner, d time.Duration) []byte {
	return appendMicros(append(b, owner[:]...), d)
}

// appendExpected appends how the record starts that a completion may replace without
// looking at the rest. Unless it is a first attempt, no record starts like that: the
// client does not know what else the record has to keep.
func appendExpected(b []byte, r *store.CompleteRequest) []byte {
	kind := byte(0)
	if r.Attempt == 1 {
		kind = recordClaimed
	}
	return append(append(b, kind), r.Owner[:]...)
}

// appendCompleted appends the completed record of a first attempt, up to and with its
// label.
func appendCompleted(b []byte, r *store.CompleteRequest) []byte {
	b = append(append(append(b, recordCompleted), r.Owner[:]...), r.Fingerprint[:]...)
	b = appendUint56(b, r.Fence)
	b = appendUint56(b, uint64(r.Retention.Microseconds()))      //nolint:gosec // validated: positive
	b = binary.BigEndian.AppendUint32(b, uint32(len(r.Payload))) //nolint:gosec // validated: at most MaxPayload
	return appendLabel(b, r.Label)
}

// appendResolution appends the fixed argument of resolve.lua.
func appendResolution(b []byte, r *store.Resolution) []byte {
	b = binary.BigEndian.AppendUint64(b, r.Fence)
	forget := byte(0)
	if r.Forget {
		forget = 1
	}
	return appendMicros(append(b, forget), max(r.Retention, 0))
}

// record is what a claim has to know of a record that it found.
type record struct {
	completed   bool
	forgotten   bool
	fingerprint store.Fingerprint
	retention   time.Duration // of a completed one
	payload     []byte
}

// parseRecord reads a record. It reports false for one of another version or kind.
func parseRecord(b []byte) (r record, ok bool) {
	f := fields{rest: b}
	kind := f.u8()
	if kind == recordForgotten {
		return record{forgotten: true}, len(b) == forgottenSize
	}
	f.take(len(store.Owner{}))
	copy(r.fingerprint[:], f.take(len(r.fingerprint)))
	switch kind {
	case recordClaimed, recordClaimedLater:
		f.take(8 + 8)
		if kind == recordClaimedLater {
			f.take(laterPart)
		}
		f.take(int(f.u8()))
		return r, f.end()
	case recordCompleted, recordCompletedLater:
		r.completed = true
		f.take(7)
		r.retention = time.Duration(f.u56()) * time.Microsecond //nolint:gosec // 7 bytes
		length := int(f.u32())
		f.take(int(f.u8()))
		if kind == recordCompletedLater {
			f.take(resolvedPart)
		}
		r.payload = f.payload()
		return r, !f.bad && len(r.payload) == length
	default:
		return r, false
	}
}

// errUnreadable is the error for a record that this release cannot read.
var errUnreadable = fail(store.ErrCorrupt, errors.New("the record has an unknown version or kind, is not a string, or was cut"))

// parseClaim reads the answer of claim.lua. It reports false for an answer that the
// script never gives.
func parseClaim(b []byte) (r store.ClaimResult, ok bool) {
	f := fields{rest: b}
	switch f.u8() {
	case tagClaimed, tagStillMine:
		r.Outcome, r.Attempt, r.Fence, r.Remaining = store.Claimed, int(f.u32()), f.u64(), f.micros()
	case tagInProgress:
		r.Outcome, r.Remaining = store.InProgress, f.micros()
	case recordCompleted, recordCompletedLater:
		found, ok := parseRecord(b)
		return store.ClaimResult{Outcome: store.Completed, Payload: found.payload}, ok
	case tagValid:
		left := f.validity()
		found, ok := parseRecord(f.rest)
		return found.replay(max(left, time.Nanosecond), left), ok && found.completed
	case tagMismatch:
		r.Outcome = store.Mismatch
	case tagLapsed:
		r.Outcome = store.Lapsed
	default:
		return r, false
	}
	return r, f.end()
}

// parseView reads the answer of inspect.lua, and returns the instant that it shows by the
// server's clock. It reports false for any other answer.
func parseView(id store.ID, b []byte) (r store.Record, at time.Time, ok bool) {
	r.ID = id
	f := fields{rest: b}
	switch f.u8() {
	case tagUnreadable:
		r.State, r.Validity, r.Size = store.StateUnreadable, f.validity(), int(f.u64()) //nolint:gosec // a size
		return r, at, f.end()
	case tagRecord:
	default:
		return r, at, false
	}
	kind := f.u8()
	r.Attempt, r.Fence, r.Lease, r.Validity = int(f.u32()), f.u64(), f.micros(), f.validity()
	r.ClaimedAt, r.CompletedAt = f.milliTime(), f.milliTime()
	at = time.UnixMicro(int64(f.u64()))            //nolint:gosec // a clock
	r.Resolved, r.Size = f.u8() == 1, int(f.u64()) //nolint:gosec // a size
	r.Label = string(f.take(int(f.u8())))
	switch {
	case kind == recordCompleted || kind == recordCompletedLater:
		r.State = store.StateCompleted
		if payload := f.payload(); len(payload) > 0 {
			r.Payload = payload
		}
	case r.Lease > 0:
		r.State = store.StateRunning
	default:
		r.State = store.StateLapsed
	}
	return r, at, f.end()
}

// fields reads an answer from front to back. Reading past its end gives zeros and makes
// end report false.
type fields struct {
	rest []byte
	bad  bool
}

func (f *fields) take(n int) []byte {
	if len(f.rest) < n {
		f.bad, f.rest = true, nil
		return make([]byte, n)
	}
	b := f.rest[:n]
	f.rest = f.rest[n:]
	return b
}

func (f *fields) u8() byte { return f.take(1)[0] }

func (f *fields) u32() uint32 { return binary.BigEndian.Uint32(f.take(4)) }

func (f *fields) u56() uint64 {
	var all [8]byte
	copy(all[1:], f.take(7))
	return binary.BigEndian.Uint64(all[:])
}

func (f *fields) u64() uint64 { return binary.BigEndian.Uint64(f.take(8)) }

func (f *fields) micros() time.Duration {
	return time.Duration(f.u64()) * time.Microsecond //nolint:gosec // two's complement, within the range of a duration
}

// validity reads how long a key lasts, where a negative number is for ever.
func (f *fields) validity() time.Duration {
	if d := f.micros(); d >= 0 {
		return d
	}
	return store.MaxDuration
}

// milliTime reads an instant in milliseconds, where 0 is none.
func (f *fields) milliTime() (t time.Time) {
	if ms := f.u64(); ms > 0 {
		t = time.UnixMilli(int64(ms)) //nolint:gosec // a clock
	}
	return t
}

func (f *fields) payload() []byte {
	b := f.rest
	f.rest = nil
	return b
}

func (f *fields) end() bool { return !f.bad && len(f.rest) == 0 }
