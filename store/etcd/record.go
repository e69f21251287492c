package repriseetcd

import (
	"encoding/binary"
	"errors"
	"time"

	"github.com/reprise-go/reprise/core/store"
)

// layout is the version of a record's layout: its first byte.
const layout = 1

// maxWhole is the size of the largest payload in bytes that the value of its record
// holds, because a listing reads the values of all records.
const maxWhole = 4 << 10

// state is the kind of a record: its second byte.
type state byte

const (
	inProgress state = 1 + iota
	unknown
	completed
)

// The flags of a record: its third byte.
const (
	flagAtMostOnce = 1 << iota
	flagWhole
	flagsEnd
)

// record is the value of a record's key, followed by its payload if that is small and
// ends with it. Two other keys say whether its attempt is live, and hold other payloads,
// because the server deletes each of them at its own time.
type record struct {
	state       state
	atMostOnce  bool
	whole       bool        // its payload follows it
	owner       store.Owner // zero once an operator resolved it
	fingerprint store.Fingerprint
	fence       uint64 // 0: the revision that wrote the record is its fence
	attempt     int
	retention   time.Duration
	horizon     time.Duration
	claimedAt   time.Time     // by the clock of the process that claimed it
	completedAt time.Time     // likewise; zero before
	spare       time.Duration // by how much its lease of etcd outlasts its validity
	size        int           // of the payload, in bytes
	parts       int           // how many further keys a payload has that is too large for one; else 0
	set         uint64        // identifies those parts among the writes of all calls
	label       string
	description string
	reason      string // of an unknown outcome
}

func (r *record) policy() store.Policy {
	return store.Policy{Label: r.label, AtMostOnce: r.atMostOnce, Retention: r.retention, Horizon: r.horizon}
}

func (r *record) setPolicy(p store.Policy) {
	r.label, r.atMostOnce, r.retention, r.horizon = p.Label, p.AtMostOnce, p.Retention, p.Horizon
}

// encode returns the value of a record without a payload. Its fixed part is followed by
// numbers and texts in the order of the fields.
func (r *record) encode() string {
	b := make([]byte, 0, 128+len(r.label)+len(r.description)+len(r.reason))
	b = append(b, layout, byte(r.state), 0)
	if r.atMostOnce {
		b[2] |= flagAtMostOnce
	}
	if r.whole {
		b[2] |= flagWhole
	}
	b = append(b, r.owner[:]...)
	b = append(b, r.fingerprint[:]...)
	for _, n := range []int64{
		int64(r.fence), int64(r.attempt), int64(r.retention), int64(r.horizon), //nolint:gosec // revisions are positive
		nanos(r.claimedAt), nanos(r.completedAt), int64(r.spare), int64(r.size), int64(r.parts), int64(r.set), //nolint:gosec // any 64 bits
	} {
		b = binary.AppendVarint(b, n)
	}
	for _, text := range []string{r.label, r.description, r.reason} {
		b = append(binary.AppendUvarint(b, uint64(len(text))), text...)
	}
	return string(b)
}

// nanos returns an instant as nanoseconds since 1970, and the zero instant as 0.
func nanos(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

var errLayout = errors.New("the record has an unknown version or state, or was cut")

// decode is the inverse of encode. The revision is the one that wrote the value.
func decode(value []byte, revision int64) (record, error) {
	var r record
	head := 3 + len(r.owner) + len(r.fingerprint)
	if len(value) < head || value[0] != layout || value[2] >= flagsEnd {
		return record{}, errLayout
	}
	r.state, r.atMostOnce, r.whole = state(value[1]), value[2]&flagAtMostOnce != 0, value[2]&flagWhole != 0
	if r.state < inProgress || r.state > completed {
		return record{}, errLayout
	}
	copy(r.owner[:], value[3:])
	copy(r.fingerprint[:], value[3+len(r.owner):])
	d := decoder{rest: value[head:]}
	r.fence = uint64(d.number()) //nolint:gosec // as it was encoded
	r.attempt = int(d.number())
	r.retention, r.horizon = time.Duration(d.number()), time.Duration(d.number())
	r.claimedAt, r.completedAt = d.instant(), d.instant()
	r.spare = time.Duration(d.number())
	r.size, r.parts = int(d.number()), int(d.number())
	r.set = uint64(d.number()) //nolint:gosec // as it was encoded
	r.label, r.description, r.reason = d.text(), d.text(), d.text()
	payload := 0
	if r.whole {
		payload = r.size
	}
	if d.failed || len(d.rest) != payload || r.attempt < 1 || r.size < 0 || r.parts < 0 ||
		r.whole && (r.state != completed || r.parts > 0) || (r.state == unknown) != (r.reason != "") {
		return record{}, errLayout
	}
	if r.fence == 0 {
		r.fence = uint64(revision) //nolint:gosec // revisions are positive
	}
	return r, nil
}

// decoder reads a record from its front. After a failure it reads zeros.
type decoder struct {
	rest   []byte
	failed bool
}

func (d *decoder) number() int64 {
	n, size := binary.Varint(d.rest)
	return n * d.take(size)
}

func (d *decoder) instant() time.Time {
	if n := d.number(); n != 0 {
		return time.Unix(0, n)
	}
	return time.Time{}
}

func (d *decoder) text() string {
	n, size := binary.Uvarint(d.rest)
	if d.take(size) == 0 || n > uint64(len(d.rest)) {
		d.failed = true
		return ""
	}
	text := string(d.rest[:n])
	d.rest = d.rest[n:]
	return text
}

// take skips the bytes of a number, and returns 0 if there were none.
func (d *decoder) take(size int) int64 {
	if size <= 0 || d.failed {
		d.failed = true
		return 0
	}
	d.rest = d.rest[size:]
	return 1
}
