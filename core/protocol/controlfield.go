package protocol

import (
	"cmp"
	"slices"
	"strings"

	"github.com/reprise-go/reprise/core/protocol/internal/record"
	"github.com/reprise-go/reprise/core/protocol/internal/syntax"
)

// ControlFields has the names of the response fields in which a guard speaks to clients.
// Everything that sets, removes or names one asks for it. Only Expires may come from a
// handler: the others are removed from its response.
type ControlFields struct {
	Replayed string // "true" on a replay
	Status   string // "unrecorded" or "unprotected": a retry may run again
	Body     string // "omitted" on a replay whose body was not kept
	Expires  string // until when a response is replayed, see Config.Announce.Expires
}

// ControlFields returns the names that a guard of this policy uses.
func (c *Config) ControlFields() ControlFields {
	return ControlFields{
		Replayed: cmp.Or(c.Announce.ReplayedHeader, record.FieldReplayed), Status: record.FieldStatus, Body: record.FieldBody, Expires: record.FieldExpires,
	}
}

// checkMarker returns [store.ErrInvalid] for a ReplayedHeader that has another meaning,
// or that would not reach every client.
func (c *Config) checkMarker() error {
	name := c.Announce.ReplayedHeader
	lower := string(syntax.AppendLower(nil, name))
	same := func(other string) bool { return strings.EqualFold(name, other) }
	switch {
	case same(record.FieldReplayed):
		return nil
	case !syntax.ValidName(name):
		return invalid("Announce.ReplayedHeader", "%q is not a field name", name)
	case record.IsControlField(name), same(record.FieldExpires):
		return invalid("Announce.ReplayedHeader", "%s is another control field", name)
	case slices.ContainsFunc(c.Key.Headers(), same):
		return invalid("Announce.ReplayedHeader", "%s is the header of the key", name)
	case record.IsNeverKept(name), describesBody(name), carriesCalls(name), strings.HasSuffix(lower, "-bin"),
		slices.Contains([]string{"cache-control", "expires", "link", "location", "retry-after", "vary"}, lower):
		return invalid("Announce.ReplayedHeader", "%s has a meaning already", name)
	default:
		return nil
	}
}

// ControlFields returns the names of the guard's control fields.
func (g *Guard) ControlFields() ControlFields { return g.cfg.ControlFields() }

// Tidy returns the value with which a field that the handler set may be sent: without the
// bytes that would end its line. keep is false for a field that only the protocol sets
// (R11). An adapter whose framework holds the response in memory, and checks neither,
// sends what Tidy returns; a [Recorder] does so itself.
func (x *Exchange) Tidy(name, value string) (tidied string, keep bool) {
	return cleanValue(value), !x.IsControlField(name)
}

// IsControlField reports whether name, in any case, is a field that only the protocol
// sets. An adapter whose framework holds the response in memory removes such fields from
// the handler's header (R11); a [Recorder] removes them itself.
func (x *Exchange) IsControlField(name string) bool { return x.guard.fields.control.reserve(name) }

// marks are the control fields with their values. The responses of a guard share them,
// and they are never modified.
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

// mark adds the marker of a replay to the header of a record. A record from before the
// marker had its name may have a field of that name, which the marker replaces.
func (m *marks) mark(h Header) Header {
	marker := m.replayed[0]
	if marker.Name != record.FieldReplayed { // which is in no record
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

// reserve reports whether only the protocol sets the field called name, in any case. The
// zero value reserves the names that every guard does.
func (f *ControlFields) reserve(name string) bool {
	return record.IsControlField(name) || f.Replayed != "" && strings.EqualFold(name, f.Replayed)
}
