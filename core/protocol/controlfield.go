package protocol

import (
	"cmp"
	"slices"
	"strings"

	"github.com/reprise-go/reprise/core/protocol/internal/syntax"
)

// The control fields. Everything that sets, removes or names one asks for
// [ControlFields].
const (
	fieldReplayed = "Idempotent-Replayed"
	fieldStatus   = "Idempotency-Status"
	fieldBody     = "Idempotency-Body"
	fieldExpires  = "Idempotency-Key-Expires"
)

// ControlFields has the names of the response fields in which a guard speaks to clients.
// Only Expires may come from a handler: the others are removed from what it wrote.
type ControlFields struct {
	Replayed string // "true" on a replay
	Status   string // "unrecorded" or "unprotected": a retry may run again
	Body     string // "omitted" on a replay whose body was not kept
	Expires  string // until when a response is replayed, see Announcing.Expires
}

// ControlFields returns the names that a guard of this policy uses.
func (c *Config) ControlFields() ControlFields {
	return ControlFields{
		Replayed: cmp.Or(c.Announce.ReplayedHeader, fieldReplayed), Status: fieldStatus, Body: fieldBody, Expires: fieldExpires,
	}
}

// checkMarker returns [store.ErrInvalid] for a ReplayedHeader that has another meaning,
// or that would not reach every client.
func (c *Config) checkMarker() error {
	name := c.Announce.ReplayedHeader
	lower := string(syntax.AppendLower(nil, name))
	var reserved ControlFields
	same := func(other string) bool { return strings.EqualFold(name, other) }
	switch {
	case same(fieldReplayed):
		return nil
	case !syntax.ValidName(name):
		return invalid("Announce.ReplayedHeader", "%q is not a field name", name)
	case reserved.reserve(name), same(fieldExpires):
		return invalid("Announce.ReplayedHeader", "%s is another control field", name)
	case slices.ContainsFunc(c.Key.Headers(), same):
		return invalid("Announce.ReplayedHeader", "%s is the header of the key", name)
	case isNeverKept([]byte(lower)), describesBody(name), carriesCalls(name), strings.HasSuffix(lower, "-bin"),
		slices.Contains([]string{"cache-control", "expires", "link", "location", "retry-after", "vary"}, lower):
		return invalid("Announce.ReplayedHeader", "%s has a meaning already", name)
	default:
		return nil
	}
}

// ControlFields returns the names of the guard's control fields.
func (g *Guard) ControlFields() ControlFields { return g.cfg.ControlFields() }

// IsControlField reports whether name, in any case, is a field that only the protocol
// sets. An adapter whose framework holds the response in memory removes such fields from
// what the handler set (R11); a [Recorder] removes them itself.
func (x *Exchange) IsControlField(name string) bool { return x.guard.fields.control.reserve(name) }

// marks are the control fields with their values. The responses of a guard share them,
// and nothing modifies them.
type marks struct {
	replayed                         []Field
	unrecorded, unprotected, omitted Field
}

func newMarks(names ControlFields) marks {
	return marks{
		replayed:    []Field{{Name: names.Replayed, Value: "true"}},
		unrecorded:  Field{Name: names.Status, Value: "unrecorded"},
		unprotected: Field{Name: names.Status, Value: "unprotected"},
		omitted:     Field{Name: names.Body, Value: "omitted"},
	}
}

// mark adds the marker of a replay to the header of a record. A record of before the marker
// had its name may have a field of that name, which the marker replaces.
func (m *marks) mark(h Header) Header {
	marker := m.replayed[0]
	if marker.Name != fieldReplayed { // which is in no record
		own := func(f Field) bool { return strings.EqualFold(f.Name, marker.Name) }
		for f := range h.All() {
			if own(f) {
				return Header{fields: append(slices.DeleteFunc(slices.Collect(h.All()), own), marker)}
			}
		}
	}
	h.fields = m.replayed
	return h
}

// reserve reports whether only the protocol sets the field called name, in any case. With
// the zero value it is what every guard reserves.
func (f *ControlFields) reserve(name string) bool {
	return strings.EqualFold(name, fieldReplayed) || f.Replayed != "" && strings.EqualFold(name, f.Replayed) ||
		strings.EqualFold(name, fieldStatus) || strings.EqualFold(name, fieldBody)
}
