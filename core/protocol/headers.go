package protocol

import (
	"slices"
	"strings"
)

// This file handles header maps as net/http and the frameworks on it have them: one map, shared by every layer of a
// handler chain, so that what a handler set is found by comparing the map before and after it.

// appendMap appends the fields of header. A name without values, which is how net/http is told to leave a field out, has
// none.
func appendMap(dst []Field, header map[string][]string) []Field {
	for name, values := range header {
		for i, value := range values {
			dst = append(dst, Field{Name: name, Value: value, Add: i > 0})
		}
	}
	return dst
}

// appendGrouped appends one field, behind those of the same name in any case, so that the fields of a name stand together.
func appendGrouped(dst []Field, name, value string) []Field {
	for i, f := range slices.Backward(dst) {
		if strings.EqualFold(f.Name, name) {
			return slices.Insert(dst, i+1, Field{Name: f.Name, Value: value, Add: true})
		}
	}
	return append(dst, Field{Name: name, Value: value})
}

// group returns the fields of list called name, which stand together.
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

// appendChanges appends what makes after of before: nothing for a name whose values are the same, the values that were added
// where the earlier ones stand before them, and all values otherwise.
func appendChanges(dst, before, after []Field) []Field {
	for len(after) > 0 {
		n := groupLen(after)
		now, was := after[:n], group(before, after[0].Name)
		if len(was) <= n && slices.Equal(was, now[:len(was)]) {
			now = now[len(was):]
		}
		dst = append(dst, now...)
		after = after[n:]
	}
	return dst
}

// restore makes header what it was when list was taken of it.
func restore(header map[string][]string, list []Field) {
	for name, values := range header {
		if len(values) > 0 && group(list, name) == nil {
			delete(header, name)
		}
	}
	for len(list) > 0 {
		n := groupLen(list)
		if !sameValues(header[list[0].Name], list[:n]) {
			values := make([]string, n)
			for i := range values {
				values[i] = list[i].Value
			}
			header[list[0].Name] = values
		}
		list = list[n:]
	}
}

func sameValues(values []string, fields []Field) bool {
	if len(values) != len(fields) {
		return false
	}
	for i := range values {
		if values[i] != fields[i].Value {
			return false
		}
	}
	return true
}

// dropControlFields removes the fields with which only the protocol speaks (R11).
func dropControlFields(header map[string][]string) {
	for name := range header {
		if IsControlField(name) {
			delete(header, name)
		}
	}
}

// appendTrailers appends the fields of header that are sent as trailers: those that a Trailer field announced, and those that are
// marked by net/http's prefix.
func appendTrailers(dst []Field, header map[string][]string) []Field {
	announced := header["Trailer"]
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

// namesField reports whether one of the comma-separated lists in lines has name, in any case.
func namesField(lines []string, name string) bool {
	for _, line := range lines {
		for element := range strings.SplitSeq(line, ",") {
			if strings.EqualFold(trimSpace(element), name) {
				return true
			}
		}
	}
	return false
}

// WriteResponse sends r through a header map and a wire, as net/http and the frameworks on it have them. Fields that outer layers set stay,
// unless r has them too.
func WriteResponse(header map[string][]string, wire Wire, r Response) {
	values := make([]string, 0, r.Header.Len())
	for f := range r.Header.All() {
		if f.Add {
			header[f.Name] = append(header[f.Name], f.Value)
			continue
		}
		values = append(values, f.Value)
		header[f.Name] = values[len(values)-1 : len(values) : len(values)]
	}
	if _, typed := header["Content-Type"]; !typed && len(r.Body) > 0 {
		header["Content-Type"] = nil // the first answer had none, so none is guessed (R16)
	}
	wire.WriteHeader(r.Status)
	if len(r.Body) > 0 && allowsBody(r.Status) {
		_, _ = wire.Write(r.Body) // whether the client is still there changes nothing
	}
}

// allowsBody reports whether a response of this status may have a body (RFC 9110, section 6.4.1).
func allowsBody(status int) bool { return status >= 200 && status != 204 && status != 304 }
