package protocol

import (
	"net/textproto"
	"slices"
	"strings"

	"github.com/reprise-go/reprise/core/internal/syntax"
)

// This file handles header maps as net/http and the frameworks on it have them: one map,
// shared by every layer of a handler chain. A comparison of the map before and after a
// handler finds its changes.

// appendMap appends the fields of header. A name without values, which tells net/http to
// leave a field out, is one that is suppressed.
func appendMap(dst []Field, header map[string][]string) []Field {
	for name, values := range header {
		if len(values) == 0 {
			dst = append(dst, Field{Name: name, Remove: true, Suppress: true})
		}
		for i, value := range values {
			dst = append(dst, Field{Name: name, Value: value, Add: i > 0})
		}
	}
	return dst
}

// appendGrouped appends one field after those of the same name in any case, so that the
// fields of a name stay together.
func appendGrouped(dst []Field, name, value string) []Field {
	for i, f := range slices.Backward(dst) {
		if strings.EqualFold(f.Name, name) {
			return slices.Insert(dst, i+1, Field{Name: f.Name, Value: value, Add: true})
		}
	}
	return append(dst, Field{Name: name, Value: value})
}

// group returns the fields of list called name, which are next to each other.
func group(list []Field, name string) []Field {
	for i := range list {
		if list[i].Name == name {
			return list[i : i+groupLen(list[i:])]
		}
	}
	return nil
}

// groupLen returns how many fields at the start of list belong to one name.
func groupLen(list []Field) int {
	n := 1
	for n < len(list) && list[n].Add && list[n].Name == list[0].Name {
		n++
	}
	return n
}

// appendPlaces appends where header has the first values of the names in list, which are
// fields of header. A handler that sets a field puts another slice there, even if its
// value is the same.
func appendPlaces(dst []*string, header map[string][]string, list []Field) []*string {
	for len(list) > 0 {
		var place *string
		if values := header[list[0].Name]; len(values) > 0 {
			place = &values[0]
		}
		dst = append(dst, place)
		list = list[groupLen(list):]
	}
	return dst
}

// appendSet appends the names of list that header has at another place than before.
func appendSet(dst []string, header map[string][]string, list []Field, places []*string) []string {
	for _, place := range places {
		if values := header[list[0].Name]; len(values) > 0 && &values[0] != place {
			dst = append(dst, list[0].Name)
		}
		list = list[groupLen(list):]
	}
	return dst
}

// appendChanges appends the fields that turn before into after: none for a name whose
// values are the same, unless it is one of those that were set; only the added values if
// the earlier ones come first, all values otherwise, and a removal for a name that is
// gone.
func appendChanges(dst, before, after []Field, set []string) []Field {
	for rest := after; len(rest) > 0; {
		n := groupLen(rest)
		now, was := rest[:n], group(before, rest[0].Name)
		setAnew := len(was) == n && slices.Contains(set, now[0].Name)
		if len(was) <= n && !setAnew && slices.Equal(was, now[:len(was)]) {
			now = now[len(was):]
		}
		dst = append(dst, now...)
		rest = rest[n:]
	}
	for len(before) > 0 {
		if group(after, before[0].Name) == nil {
			dst = append(dst, Field{Name: before[0].Name, Remove: true})
		}
		before = before[groupLen(before):]
	}
	return dst
}

// sameFields reports whether two groups of fields have the same values.
func sameFields(a, b []Field) bool {
	return slices.EqualFunc(a, b, func(a, b Field) bool { return a.Value == b.Value })
}

// restore gives header the fields of list, which it had before.
func restore(header map[string][]string, list []Field) {
	for name := range header {
		if group(list, name) == nil {
			delete(header, name)
		}
	}
	for len(list) > 0 {
		n := groupLen(list)
		switch {
		case list[0].Suppress:
			header[list[0].Name] = nil
		case !slices.EqualFunc(header[list[0].Name], list[:n], func(value string, f Field) bool { return value == f.Value }):
			values := make([]string, n)
			for i := range values {
				values[i] = list[i].Value
			}
			header[list[0].Name] = values
		}
		list = list[n:]
	}
}

// appendTrailers appends to an empty list the trailer fields that net/http sends for the
// header that a handler leaves: those with its prefix, without it, and those that the
// values announced of a Trailer field name. In HTTP/1.1 a name that is announced twice is
// sent twice; in HTTP/2 it is sent once, with the values that have the prefix, if any.
func appendTrailers(dst []Field, header map[string][]string, announced []string, v version) []Field {
	add := func(name string, values []string) {
		for _, value := range values {
			dst = appendGrouped(dst, name, cleanValue(value))
		}
	}
	for name, values := range header {
		if undeclared, ok := strings.CutPrefix(name, trailerPrefix); ok {
			add(textproto.CanonicalMIMEHeaderKey(undeclared), values)
		}
	}
	for _, line := range announced {
		for element := range strings.SplitSeq(line, ",") {
			name := textproto.CanonicalMIMEHeaderKey(syntax.TrimSpace(element))
			if v != http2 || group(dst, name) == nil {
				add(name, header[name])
			}
		}
	}
	return dst
}

// appendLate appends the trailer fields of header, in the form in which net/http expects
// them after the body.
func appendLate(dst []Field, header map[string][]string, announced []string) []Field {
	for name, values := range header {
		if !strings.HasPrefix(name, trailerPrefix) && !namesField(announced, name) {
			continue
		}
		for i, value := range values {
			dst = append(dst, Field{Name: name, Value: value, Add: i > 0})
		}
	}
	return dst
}

const trailerPrefix = "Trailer:"

// namesField reports whether one of the comma-separated lists in lines has name, in any
// case.
func namesField(lines []string, name string) bool {
	for _, line := range lines {
		for element := range strings.SplitSeq(line, ",") {
			if strings.EqualFold(syntax.TrimSpace(element), name) {
				return true
			}
		}
	}
	return false
}

// sniffed is how much of a body net/http looks at to guess its media type.
const sniffed = 512

// settleType guesses the media type from the bytes written until now, and guesses none
// later: the header would have left.
func (r *Recorder) settleType() {
	s := r.x.scratch
	if r.nameType(s.response); group(s.committed, "Content-Type") == nil {
		s.committed = append(s.committed, Field{Name: "Content-Type", Remove: true, Suppress: true})
	}
}

// announced returns the values of the Trailer field that the handler wrote.
func (r *Recorder) announced() (lines []string) {
	for _, f := range group(r.x.scratch.committed, "Trailer") {
		lines = append(lines, f.Value)
	}
	return lines
}

// waits is how long a body net/http holds back, so that it can declare its length.
const waits = 2 << 10

// sendsTrailers reports whether the client gets the trailers of the response. In HTTP/1.1
// they only follow a body in chunks, which is one without a declared length that was
// flushed, or is long, or has trailers that were known before it.
func (r *Recorder) sendsTrailers() bool {
	if r.x.version != http11 || !syntax.AllowsBody(r.status) {
		return r.x.version.sendsTrailers(r.status)
	}
	known := func(f Field) bool {
		return f.Name == "Trailer" && !f.Suppress || strings.HasPrefix(f.Name, trailerPrefix)
	}
	return r.declared < 0 && (r.state == live || r.written > waits || slices.ContainsFunc(r.x.scratch.committed, known))
}

// nameType adds the media type that the framework would guess, so that a replay has the
// one of the first response. Only a field from below the middleware prevents that: an
// outer layer that compresses sets Content-Encoding for bytes that it has not seen yet.
// start is the start of the body.
func (r *Recorder) nameType(start []byte) {
	s := r.x.scratch
	if r.sniff == nil || len(start) == 0 || !syntax.AllowsBody(r.status) || group(s.committed, "Content-Type") != nil {
		return
	}
	for _, name := range []string{"Content-Encoding", "Transfer-Encoding"} {
		if own := group(s.committed, name); len(own) > 0 && own[0].Value != "" && !sameFields(own, group(s.outer, name)) {
			return
		}
	}
	s.committed = append(s.committed, Field{Name: "Content-Type", Value: r.sniff(start)})
}
