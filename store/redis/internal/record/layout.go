// Package record has the scripts that read and write a record in Redis, and the binary
// layout of the record and of the arguments and answers of the scripts.
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
	recordClaimedLater   = 0x22 // in progress, by a later attempt, claimed again or watched
	recordCompleted      = 0x23
	recordCompletedLater = 0x24 // completed by a later attempt
	recordForgotten      = 0x25 // only the fence of a forgotten record, for some milliseconds
	recordResolved       = 0x26 // completed by an operator
	recordUnknown        = 0x27 // in progress, by an attempt that ended without saying how
)

// The sizes of the parts of a record, in bytes.
const (
	claimLater     = 4 + 8 + 8               // before the policy of recordClaimedLater and recordUnknown
	completedHead  = 1 + 16 + 32 + 7 + 7 + 4 // before the policy
	completedLater = 4 + 6                   // behind the policy of recordCompletedLater
	forgottenSize  = 1 + 8
	horizonSize    = 7
)

// A policy is a byte, which has the length of the label and these flags, the label, and
// the horizon if there is one. With a description, the byte has described instead of the
// length; the lengths of the label and the description follow, a byte each, and the
// description stands behind the label.
const (
	flagAtMostOnce = 0x40
	flagHorizon    = 0x80
	lengthMask     = 0x3f
	described      = lengthMask // more than MaxLabel
)

// The first byte of a script's answer; numbers follow big-endian, durations in
// microseconds, instants in microseconds or, where it says so, in milliseconds.
const (
	TagCorrupt    = '!' // any script: the record cannot be read
	TagBothKeys   = 'K' // claim, inspect, resolve: the key of the payload is needed, too
	TagClaimed    = '+' // claim: attempt u32, fence u64, remaining i64
	TagStillMine  = '=' // claim: the same, for the caller's own lapsed claim; no write
	TagInProgress = 'P' // claim: remaining i64
	TagMismatch   = 'M' // claim
	TagLapsed     = 'L' // claim
	TagCompleted  = 'C' // claim: payload
	TagExpired    = 'E' // claim
	TagFinished   = 'F' // renew: completed by the caller
	TagLost       = 'X' // renew, complete, unknown
	TagDone       = 'D' // complete
	TagChanged    = 'W' // renew, release, unknown, resolve: written
	TagRecord     = 'R' // inspect: see ParseView
	TagNone       = 'N' // release, inspect, resolve: no such record
)

// The flags of a claim by its script.
const (
	FlagTakeover = 1 << iota
	FlagWaiting
)

// MaxFixed is the size in bytes of the largest fixed arguments of a script, those of a
// completion: the start of the claim, and the completed record up to and including its
// policy. A description is not counted.
const MaxFixed = (1 + 16) + completedHead + 1 + store.MaxLabel + horizonSize

// Wrote reports whether a script that answers with tag has written.
func Wrote(tag byte) bool { return tag == TagClaimed || tag == TagDone || tag == TagChanged }

// ClaimSpan returns how long after its claim the key of a record in progress expires, in
// milliseconds: the scripts compute the instant of the claim from it. A key exists until
// the end of the millisecond in which it expires, and its time counts from the start of
// the millisecond in which it was set. So a lease or a validity may end a millisecond
// early, and none ends late, except for one of a single millisecond.
func ClaimSpan(lease, remembered time.Duration) int64 { return CompletedSpan(max(lease, remembered)) }

// CompletedSpan is ClaimSpan for a completed record.
func CompletedSpan(remembered time.Duration) int64 {
	return max(1, (remembered.Microseconds()+999)/1000-1)
}

// FenceAt returns the fence of a first attempt that began in a millisecond of the
// server's clock: the last microsecond of that millisecond, so that no later claim in it
// has a lower fence.
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

// appendPolicy appends a policy and a description, but not the retention, whose place and
// size depend on the kind of the record.
func appendPolicy(b []byte, p *store.Policy, description string) []byte {
	at, label := len(b), byte(len(p.Label)) //nolint:gosec // validated: at most MaxLabel
	if b = append(b, label); description != "" {
		b = append(append(b[:at], described, label), byte(len(description))) //nolint:gosec // validated: at most MaxDescription
	}
	if p.AtMostOnce {
		b[at] |= flagAtMostOnce
	}
	b = append(append(b, p.Label...), description...)
	if p.Horizon > 0 {
		b[at] |= flagHorizon
		b = appendUint56(b, uint64(p.Horizon.Microseconds())) //nolint:gosec // positive
	}
	return b
}

// AppendClaimed appends the record of a first attempt.
func AppendClaimed(b []byte, r *store.ClaimRequest) []byte {
	b = append(append(append(b, recordClaimed), r.Owner[:]...), r.Fingerprint[:]...)
	return appendPolicy(appendMicros(appendMicros(b, r.Lease), r.Retention), &r.Policy, r.Description)
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
	b = append(b, flags)
	b = binary.BigEndian.AppendUint32(b, uint32(min(r.MaxAttempts, math.MaxUint32))) //nolint:gosec // bounded here
	return appendPolicy(b, &r.Policy, r.Description)
}

// AppendOwned appends the fixed argument of renew.lua.
func AppendOwned(b []byte, owner store.Owner, d time.Duration) []byte {
	return appendMicros(append(b, owner[:]...), d)
}

// AppendExpected appends the start of a record that a completion may replace without
// reading the rest. For a later attempt, it appends a start that no record has, because
// the client does not know the other fields that the record has to keep.
func AppendExpected(b []byte, r *store.CompleteRequest) []byte {
	kind := byte(0)
	if r.Attempt == 1 {
		kind = recordClaimed
	}
	return append(append(b, kind), r.Owner[:]...)
}

// AppendCompleted appends the completed record of a first attempt, up to and including
// its policy.
func AppendCompleted(b []byte, r *store.CompleteRequest) []byte {
	b = append(append(append(b, recordCompleted), r.Owner[:]...), r.Fingerprint[:]...)
	b = appendUint56(b, r.Fence)
	b = appendUint56(b, uint64(r.Retention.Microseconds()))      //nolint:gosec // validated: positive
	b = binary.BigEndian.AppendUint32(b, uint32(len(r.Payload))) //nolint:gosec // validated: at most MaxPayload
	return appendPolicy(b, &r.Policy, r.Description)
}

// AppendResolution appends the fixed argument of resolve.lua.
func AppendResolution(b []byte, r *store.Resolution) []byte {
	forget := byte(0)
	if r.Forget {
		forget = 1
	}
	b = append(binary.BigEndian.AppendUint64(b, r.Fence), byte(r.State), forget)
	return appendMicros(b, max(r.Retention, 0))
}
