package record

import (
	"encoding/binary"
	"math"
	"time"

	"github.com/reprise-go/reprise/core/store"
)

// The first byte of a record: the version of the layout, 2, in the high half and the kind
// in the low one. See lua/record.lua.
const (
	recordClaimed        = 0x21 // in progress, by a first attempt, without a watcher
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

// IdentitySize is the size in bytes of the start of a completed record that no other
// record of the key has: up to its fence, included.
const IdentitySize = 1 + 16 + 32 + 7

// The first byte of a script's answer; numbers follow big-endian, durations in
// microseconds, instants in microseconds or, where it says so, in milliseconds. A replay
// is the record itself.
const (
	TagCorrupt    = '!' // any script: the record cannot be read
	TagClaimed    = '+' // claim: attempt u32, fence u64, remaining i64
	TagStillMine  = '=' // claim: the same, for the caller's own lapsed claim; no write
	TagInProgress = 'P' // claim: remaining i64
	TagMismatch   = 'M' // claim
	TagLapsed     = 'L' // claim
	TagValid      = 'V' // claim that asks for it: validity i64, the completed record
	TagFinished   = 'F' // renew: completed by the caller
	TagLost       = 'X' // renew, complete
	TagDone       = 'D' // complete
	TagChanged    = 'W' // renew, release, resolve: written
	TagRecord     = 'R' // inspect: see ParseView
	TagUnreadable = 'U' // inspect: validity i64, size u64
	TagNone       = 'N' // release, inspect, resolve: no such record
)

// The flags of a claim by its script.
const (
	FlagTakeover = 1 << iota
	FlagWaiting
	FlagValidity
)

// MaxFixed is the size in bytes of the largest fixed arguments of a script, which are
// those of a completion: the start of the claim, and the completed record up to its
// label, included.
const MaxFixed = (1 + 16) + completedHead + 1 + store.MaxLabel

// Wrote reports whether a script that answers with tag has written.
func Wrote(tag byte) bool { return tag == TagClaimed || tag == TagDone || tag == TagChanged }

// ClaimSpan returns how long after its claim the key of a record in progress expires, in
// milliseconds: the scripts compute the instant of the claim from it. A key is seen until
// the end of the millisecond in which it expires, and was set at some time of the one
// that it counts from. So a lease or a validity may end a millisecond early, and none
// ends late but that of a single millisecond.
func ClaimSpan(lease, retention time.Duration) int64 { return CompletedSpan(max(lease, retention)) }

// CompletedSpan is ClaimSpan for a completed record.
func CompletedSpan(retention time.Duration) int64 { return max(1, millis(retention)-1) }

// millis returns the microseconds of d as milliseconds, rounded up.
func millis(d time.Duration) int64 { return (d.Microseconds() + 999) / 1000 }

// FenceAt returns the fence of a first attempt that began in a millisecond of the
// server's clock: the last microsecond of it, so that a later claim in the same
// millisecond has no lower one.
func FenceAt(began int64) uint64 { return uint64(began)*1000 + 999 } //nolint:gosec // checked: positive

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

// AppendClaimed appends the record of a first attempt.
func AppendClaimed(b []byte, r *store.ClaimRequest) []byte {
	b = append(append(append(b, recordClaimed), r.Owner[:]...), r.Fingerprint[:]...)
	return appendLabel(appendMicros(appendMicros(b, r.Lease), r.Retention), r.Label)
}

// AppendClaim appends the fixed argument of claim.lua.
func AppendClaim(b []byte, r *store.ClaimRequest) []byte {
	b = append(append(b, r.Owner[:]...), r.Fingerprint[:]...)
	b = appendMicros(appendMicros(b, r.Lease), r.Retention)
	var flags byte
	if r.Takeover {
		flags |= FlagTakeover
	}
	if r.Waiting {
		flags |= FlagWaiting
	}
	if r.Validity {
		flags |= FlagValidity
	}
	b = append(b, flags)
	b = binary.BigEndian.AppendUint32(b, uint32(min(r.MaxAttempts, math.MaxUint32))) //nolint:gosec // bounded here
	return appendLabel(b, r.Label)
}

// AppendOwned appends the fixed argument of renew.lua.
func AppendOwned(b []byte, owner store.Owner, d time.Duration) []byte {
	return appendMicros(append(b, owner[:]...), d)
}

// AppendExpected appends how the record starts that a completion may replace without
// looking at the rest. Unless it is a first attempt, no record starts like that: the
// client does not know the other fields that the record has to keep.
func AppendExpected(b []byte, r *store.CompleteRequest) []byte {
	kind := byte(0)
	if r.Attempt == 1 {
		kind = recordClaimed
	}
	return append(append(b, kind), r.Owner[:]...)
}

// AppendCompleted appends the completed record of a first attempt, up to and with its
// label.
func AppendCompleted(b []byte, r *store.CompleteRequest) []byte {
	b = append(append(append(b, recordCompleted), r.Owner[:]...), r.Fingerprint[:]...)
	b = appendUint56(b, r.Fence)
	b = appendUint56(b, uint64(r.Retention.Microseconds()))      //nolint:gosec // validated: positive
	b = binary.BigEndian.AppendUint32(b, uint32(len(r.Payload))) //nolint:gosec // validated: at most MaxPayload
	return appendLabel(b, r.Label)
}

// AppendResolution appends the fixed argument of resolve.lua.
func AppendResolution(b []byte, r *store.Resolution) []byte {
	b = binary.BigEndian.AppendUint64(b, r.Fence)
	forget := byte(0)
	if r.Forget {
		forget = 1
	}
	return appendMicros(append(b, forget), max(r.Retention, 0))
}
