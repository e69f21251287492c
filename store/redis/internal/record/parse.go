package record

import (
	"slices"
	"strconv"
	"time"

	"github.com/reprise-go/reprise/core/store"
)

// Found has the fields of a record that decide about a claim.
type Found struct {
	Completed   bool
	Separate    bool // the payload has a separate key
	Forgotten   bool
	Fingerprint store.Fingerprint
	Payload     []byte
}

// Parse reads a record. It reports false for one of another version or kind.
func Parse(b []byte) (r Found, ok bool) {
	f := fields{rest: b}
	kind := f.u8()
	if kind == recordForgotten {
		return Found{Forgotten: true}, len(b) == forgottenSize
	}
	f.take(len(store.Owner{}))
	copy(r.Fingerprint[:], f.take(len(r.Fingerprint)))
	switch kind {
	case recordClaimed, recordClaimedLater, recordUnknown:
		f.take(8 + 8)
		if kind != recordClaimed {
			f.take(claimLater)
		}
		f.policy()
		if kind == recordUnknown {
			return r, len(f.payload()) > 0 && !f.bad
		}
		return r, f.end()
	case recordCompleted, recordCompletedLater, recordResolved:
		r.Completed = true
		f.take(7 + 7)
		length := int(f.uint(4)) //nolint:gosec // 4 bytes
		r.Separate = f.policy().horizon > 0
		switch kind {
		case recordCompletedLater:
			f.take(completedLater)
		case recordResolved:
			f.take(completedLater + 8)
			r.Separate = f.uint(8) > 0
		}
		if r.Separate {
			return r, f.end()
		}
		r.Payload = f.payload()
		return r, !f.bad && len(r.Payload) == length
	default:
		return r, false
	}
}

// ParseClaim reads the answer of claim.lua. It reports false for an answer that the
// script never gives.
func ParseClaim(b []byte) (r store.ClaimResult, ok bool) {
	f := fields{rest: b}
	switch f.u8() {
	case TagClaimed, TagStillMine:
		r.Outcome, r.Attempt, r.Fence, r.Remaining = store.Claimed, int(f.uint(4)), f.uint(8), f.micros() //nolint:gosec // 4 bytes
	case TagInProgress:
		r.Outcome, r.Remaining = store.InProgress, f.micros()
	case TagCompleted:
		r.Outcome, r.Payload = store.Completed, f.payload()
	case TagExpired:
		r.Outcome = store.Expired
	case TagMismatch:
		r.Outcome = store.Mismatch
	case TagLapsed:
		r.Outcome = store.Lapsed
	default:
		return r, false
	}
	return r, f.end()
}

// ParseView reads the answer of inspect.lua, and returns the time of the answer by the
// server's clock. It reports false for an answer that the script never gives.
func ParseView(id store.ID, b []byte) (r store.Record, at time.Time, ok bool) {
	f := fields{rest: b}
	if f.u8() != TagRecord {
		return r, at, false
	}
	r.ID, r.State = id, store.RecordState(f.u8())
	r.Attempt, r.Fence, r.Lease, r.Validity = int(f.uint(4)), f.uint(8), f.micros(), f.micros() //nolint:gosec // 4 bytes
	if r.Validity < 0 {
		r.Validity = store.MaxDuration // the key lasts for ever
	}
	r.ClaimedAt, r.CompletedAt = f.milliTime(), f.milliTime()
	at = time.UnixMicro(int64(f.uint(8)))            //nolint:gosec // a clock
	r.Resolved, r.Size = f.u8() == 1, int(f.uint(8)) //nolint:gosec // a size
	r.Retention = f.micros()
	copy(r.Fingerprint[:], f.take(len(r.Fingerprint)))
	p := f.policy()
	r.Label, r.AtMostOnce, r.Horizon, r.Description = string(p.label), p.atMostOnce, p.horizon, string(p.description)
	switch r.State {
	case store.StateCompleted:
		if payload := f.payload(); len(payload) > 0 {
			r.Payload = payload
		}
	case store.StateUnknown:
		r.Reason = string(f.payload())
	case store.StateRunning, store.StateLapsed, store.StateExpired, store.StateUnreadable:
	default:
		return r, at, false
	}
	return r, at, f.end()
}

// ParseCount reads the answer of count.lua. It adds the numbers of records to counts,
// except for those of probes, and returns where the next step begins and the keys of the
// records that were not counted. It reports false for an answer that the script never
// gives.
func ParseCount(answer []string, counts map[store.LabelState]int) (next string, others []string, ok bool) {
	if len(answer)%2 == 0 {
		return "", nil, false
	}
	for pair := range slices.Chunk(answer[1:], 2) {
		if pair[0] == "" {
			others = append(others, pair[1])
			continue
		}
		n, err := strconv.Atoi(pair[1])
		if err != nil {
			return "", nil, false
		}
		key := store.LabelState{Label: pair[0][1:], State: store.StateCompleted}
		if pair[0][0] == TagExpired {
			key.State = store.StateExpired
		}
		if key.Label != store.ProbeLabel {
			counts[key] += n
		}
	}
	return answer[0], others, true
}

// fields reads an answer from front to back. Reads past its end return zeros and make end
// report false.
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

// uint reads a number of n bytes.
func (f *fields) uint(n int) (number uint64) {
	for _, b := range f.take(n) {
		number = number<<8 | uint64(b)
	}
	return number
}

func (f *fields) micros() time.Duration {
	return time.Duration(f.uint(8)) * time.Microsecond //nolint:gosec // two's complement, within the range of a duration
}

// policy has the fields that appendPolicy appends.
type policy struct {
	label, description []byte
	atMostOnce         bool
	horizon            time.Duration
}

func (f *fields) policy() (p policy) {
	flags := f.u8()
	label, description := flags&lengthMask, byte(0)
	if label == described {
		label, description = f.u8(), f.u8()
	}
	p.label, p.description = f.take(int(label)), f.take(int(description))
	if flags&flagHorizon != 0 {
		p.horizon = time.Duration(f.uint(7)) * time.Microsecond //nolint:gosec // 7 bytes
	}
	p.atMostOnce = flags&flagAtMostOnce != 0
	return p
}

// milliTime reads an instant in milliseconds. 0 means none.
func (f *fields) milliTime() (t time.Time) {
	if ms := f.uint(8); ms > 0 {
		t = time.UnixMilli(int64(ms)) //nolint:gosec // a clock
	}
	return t
}

func (f *fields) payload() []byte { return f.take(len(f.rest)) }

func (f *fields) end() bool { return !f.bad && len(f.rest) == 0 }
