package draws

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// marker is the field that marks a replay.
const marker = "Idempotent-Replayed"

// neverKept are the fields that are never replayed (R14), as far as they are drawn.
var neverKept = []string{"Set-Cookie", "Date"}

// replayOf returns the replay of a first response: it has the marker, and neither the
// 1xx (R17) nor the fields that are never kept, unless a layer outside sets them.
func replayOf(f *Framework, d *Draw, first *answer) answer {
	want := *first
	want.informs, want.fields = nil, union(first.fields, nil)
	for _, name := range neverKept {
		delete(want.fields, name)
	}
	for _, layer := range d.Inside {
		for _, name := range f.Fresh[layer] {
			if !slices.ContainsFunc(d.Outside, func(outer string) bool { return slices.Contains(f.Fresh[outer], name) }) {
				delete(want.fields, name)
			}
		}
	}
	want.fields[marker] = []string{"true"}
	return want
}

// isProblem reports whether a response is the adapter's own, with a code.
func isProblem(a *answer, code string) bool {
	return a.status >= 400 && strings.Contains(a.plain(), `"code":"`+code+`"`)
}

// difference is one between two responses, in a field or in something else of them.
type difference struct{ field, text string }

// differences compares two responses. Date is the server's, and Transfer-Encoding is the
// framing.
func differences(got, want *answer) (found []difference) {
	differ := func(field string, got, want any) {
		if g, w := fmt.Sprintf("%.80q", got), fmt.Sprintf("%.80q", want); g != w {
			found = append(found, difference{field, fmt.Sprintf("%s is %s, want %s", field, g, w)})
		}
	}
	if got.broken || want.broken { // how much of it left the server is a matter of its buffers
		if got.broken != want.broken {
			found = append(found, difference{"broken", fmt.Sprintf("%s, want %s", got, want)})
		}
		return found
	}
	differ("status", strconv.Itoa(got.status), strconv.Itoa(want.status))
	for _, name := range slices.Sorted(maps.Keys(union(got.fields, want.fields))) {
		if name != "Date" && name != "Transfer-Encoding" {
			differ(name, got.fields[name], want.fields[name])
		}
	}
	if g, w := got.plain(), want.plain(); g != w {
		found = append(found, difference{"body", fmt.Sprintf("body is %d bytes %.60q, want %d bytes %.60q", len(g), g, len(w), w)})
	}
	differ("framing", got.framing, want.framing)
	for _, name := range slices.Sorted(maps.Keys(union(got.trailer, want.trailer))) {
		if g, w := got.trailer[name], want.trailer[name]; !slices.Equal(g, w) {
			found = append(found, difference{"trailers", fmt.Sprintf("trailer %s is %q, want %q", name, g, w)})
		}
	}
	differ("informs", got.informs, want.informs)
	differ("extra", got.extra, want.extra)
	return found
}

// union returns the fields of both.
func union(a, b map[string][]string) map[string][]string {
	all := map[string][]string{}
	maps.Copy(all, a)
	maps.Copy(all, b)
	return all
}

// without returns the fields but one.
func without(fields map[string][]string, name string) map[string][]string {
	rest := maps.Clone(fields)
	delete(rest, name)
	return rest
}

// String returns the response on one line.
func (a *answer) String() string {
	if a.broken {
		return fmt.Sprintf("broken after %d with %d bytes", a.status, len(a.body))
	}
	return fmt.Sprintf("%d, %v, %d bytes %.60q", a.status, a.fields, len(a.body), a.plain())
}
