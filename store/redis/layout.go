package repriseredis

import (
	"encoding/binary"
	"errors"
	"math"
	"time"

	reprise "github.com/reprise-go/reprise/core"
)

// The first byte of a script's answer; numbers follow big-endian, durations in
// microseconds. A replay is the record itself.
const (
	tagCorrupt    = '!' // any script: the record cannot be read
	tagClaimed    = '+' // claim: attempt u32, fence u64, remaining i64
	tagStillMine  = '=' // claim: the same, for the caller's own lapsed claim; nothing was written
	tagInProgress = 'P' // claim: remaining i64
	tagMismatch   = 'M' // claim
	tagLapsed     = 'L' // claim
	tagLarge      = 'B' // claim: completed, and the record exceeds the limit for batches
	tagFinished   = 'F' // renew: completed by the caller
	tagLost       = 'X' // renew, complete
	tagDone       = 'D' // complete
	tagChanged    = 'W' // renew, release, resolve: written
	tagRecord     = 'R' // inspect: the record's first byte, attempt u32, fence u64, lease i64, validity i64, payload
	tagNone       = 'N' // release, inspect, resolve: no such record
)

// claimSize is the size of the fixed argument of claim.lua without a limit of the reply.
const claimSize = 69

// The first byte of a record, and the size of a completed record without its payload. See
// lua/record.lua.
const (
	recordInProgress = 0x11
	recordCompleted  = 0x12
	completedHead    = 71
)

var errLayout = errors.New("the record has an unknown version or state, or was cut")

// wrote reports whether a script that answers with tag has written.
func wrote(tag byte) bool { return tag == tagClaimed || tag == tagDone || tag == tagChanged }

// appendMicros appends a duration as the scripts read it.
func appendMicros(b []byte, d time.Duration) []byte {
	return binary.BigEndian.AppendUint64(b, uint64(d.Microseconds())) //nolint:gosec // validated: never negative
}

// appendClaim appends the fixed argument of claim.lua.
func appendClaim(b []byte, r *reprise.ClaimRequest) []byte {
	b = append(b, r.Owner[:]...)
	b = append(b, r.Fingerprint[:]...)
	b = appendMicros(b, r.Lease)
	b = appendMicros(b, r.Retention)
	b = append(b, flag(r.Takeover))
	return binary.BigEndian.AppendUint32(b, uint32(min(r.MaxAttempts, math.MaxUint32))) //nolint:gosec // bounded here
}

// appendOwned appends the fixed argument of renew.lua and complete.lua.
func appendOwned(b []byte, owner reprise.Owner, d time.Duration) []byte {
	return appendMicros(append(b, owner[:]...), d)
}

// appendResolution appends the fixed argument of resolve.lua.
func appendResolution(b []byte, r *reprise.Resolution) []byte {
	b = binary.BigEndian.AppendUint64(b, r.Fence)
	b = append(b, flag(r.Forget))
	return appendMicros(b, max(r.Retention, 0))
}

func flag(on bool) byte {
	if on {
		return 1
	}
	return 0
}

// parseClaim reads the answer of claim.lua. It reports false for an answer that the
// script never gives.
func parseClaim(b []byte) (r reprise.ClaimResult, ok bool) {
	f := fields{rest: b}
	switch f.u8() {
	case tagClaimed, tagStillMine:
		r.Outcome, r.Attempt, r.Fence, r.Remaining = reprise.Claimed, int(f.u32()), f.u64(), f.micros()
	case tagInProgress:
		r.Outcome, r.Remaining = reprise.InProgress, f.micros()
	case recordCompleted:
		f.take(completedHead - 1)
		r.Outcome, r.Payload = reprise.Completed, f.payload()
	case tagMismatch:
		r.Outcome = reprise.Mismatch
	case tagLapsed:
		r.Outcome = reprise.Lapsed
	default:
		return r, false
	}
	return r, f.end()
}

// parseRecord reads the answer of inspect.lua. It reports false for any other answer.
func parseRecord(id reprise.ID, b []byte) (r reprise.Record, ok bool) {
	f := fields{rest: b}
	if f.u8() != tagRecord {
		return r, false
	}
	state := f.u8()
	r.ID = id
	r.Attempt, r.Fence, r.Lease, r.Validity = int(f.u32()), f.u64(), f.micros(), f.micros()
	payload := f.payload()
	switch {
	case state == recordCompleted:
		r.State, r.Size = reprise.StateCompleted, len(payload)
		if len(payload) > 0 {
			r.Payload = payload
		}
	case r.Lease > 0:
		r.State = reprise.StateRunning
	default:
		r.State = reprise.StateLapsed
	}
	return r, f.end() && (state == recordCompleted || state == recordInProgress)
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

func (f *fields) u64() uint64 { return binary.BigEndian.Uint64(f.take(8)) }

func (f *fields) micros() time.Duration {
	return time.Duration(f.u64()) * time.Microsecond //nolint:gosec // two's complement, within the range of a duration
}

func (f *fields) payload() []byte {
	b := f.rest
	f.rest = nil
	return b
}

func (f *fields) end() bool { return !f.bad && len(f.rest) == 0 }
