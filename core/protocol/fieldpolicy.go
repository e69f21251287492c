package protocol

import (
	"cmp"
	"slices"
	"strings"

	"github.com/reprise-go/reprise/core/protocol/internal/record"
	"github.com/reprise-go/reprise/core/protocol/internal/syntax"
)

// fieldPolicy decides which fields of a response are kept for its replays. The zero value
// keeps all but those that are never kept. It is immutable and safe for concurrent use.
type fieldPolicy struct {
	allow   map[string]struct{} // in lower case; nil: no list
	control ControlFields
}

// newFieldPolicy returns the policy that keeps the fields called allow, in any case; an
// empty list keeps none, and nil keeps all. Either way some are never kept. To name one
// of those is an error, and so is an invalid field name.
func newFieldPolicy(allow []string, control ControlFields) (fieldPolicy, error) {
	if allow == nil {
		return fieldPolicy{control: control}, nil
	}
	names := make(map[string]struct{}, len(allow))
	for _, name := range allow {
		lower := syntax.AppendLower(nil, name)
		if !syntax.ValidName(name) {
			return fieldPolicy{}, invalid("Keep.Headers", "%q is not a field name", name)
		}
		if record.LowerIsNeverKept(lower) || control.reserve(name) {
			return fieldPolicy{}, invalid("Keep.Headers", "the field %s is never kept", name)
		}
		names[string(lower)] = struct{}{}
	}
	return fieldPolicy{allow: names, control: control}, nil
}

// keeps reports whether the field called name, in any case, is kept. It does not allocate
// for names of up to 64 bytes.
func (p *fieldPolicy) keeps(name string) bool {
	var stack [64]byte
	lower := syntax.AppendLower(stack[:0], name)
	if record.LowerIsNeverKept(lower) || p.control.reserve(name) {
		return false
	}
	if p.allow == nil {
		return true
	}
	switch string(lower) {
	case "content-encoding", "content-range", "content-type", // without them the stored body is unusable
		"grpc-message", "grpc-status", "grpc-status-details-bin": // and these are the response of a call that failed
		return true
	}
	_, ok := p.allow[string(lower)]
	return ok
}

// filter appends to dst the fields of src that are kept, and counts the Set-Cookie lines
// that are not. It drops fields that the policy does not keep, fields that a Connection
// field of src names, and fields that cannot be sent (see [validField]). It keeps every
// removal, which is about the fields of outer layers. It does not allocate if dst has
// room. dst and src must not overlap.
func (p *fieldPolicy) filter(dst, src []Field) (kept []Field, setCookies int) {
	hopByHop := hasConnection(src)
	orphaned := "" // the field whose first value was dropped: its next one replaces instead
	for _, f := range src {
		switch {
		case f.Remove:
			if syntax.ValidName(f.Name) && !p.control.reserve(f.Name) {
				dst = append(dst, f)
			}
		case !p.keeps(f.Name):
			if strings.EqualFold(f.Name, "Set-Cookie") {
				setCookies++
			}
		case hopByHop && connectionNames(src, f.Name):
		case !syntax.ValidField(f.Name, f.Value):
			if !f.Add {
				orphaned = f.Name
			}
		default:
			if orphaned != "" && strings.EqualFold(f.Name, orphaned) {
				f.Add, orphaned = false, ""
			}
			dst = append(dst, f)
		}
	}
	return dst, setCookies
}

// filterTrailers appends to dst the trailer fields of src that are kept: all that are not
// never kept. They belong to the body, so that a list of fields to keep does not concern
// them.
func (p *fieldPolicy) filterTrailers(dst, src []Field) []Field {
	all := fieldPolicy{control: p.control}
	dst, _ = all.filter(dst, src)
	return dst
}

func hasConnection(fields []Field) bool {
	for _, f := range fields {
		if isConnection(f.Name) {
			return true
		}
	}
	return false
}

// connectionNames reports whether a Connection field among fields names name, so that it
// belongs to one hop.
func connectionNames(fields []Field, name string) bool {
	for _, f := range fields {
		if !isConnection(f.Name) {
			continue
		}
		for list := f.Value; list != ""; {
			var option string
			option, list, _ = strings.Cut(list, ",")
			if strings.EqualFold(syntax.TrimSpace(option), name) {
				return true
			}
		}
	}
	return false
}

func isConnection(name string) bool { return strings.EqualFold(name, "Connection") }

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
