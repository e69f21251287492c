package protocol

import (
	"maps"
	"reflect"
	"slices"
	"testing"
)

// Of a header map that outer layers share, the changes from inside are kept, in a form
// that makes the same changes to the header of another request.
func TestR13OnlyWhatTheHandlerChangedIsKept(t *testing.T) {
	t.Parallel()
	type header = map[string][]string
	for _, c := range []struct {
		name          string
		before, after header
		replayedOver  header
		want          header
	}{
		{"nothing changed", header{"X-Id": {"1"}}, header{"X-Id": {"1"}}, header{"X-Id": {"2"}}, header{"X-Id": {"2"}}},
		{"added", header{"X-Id": {"1"}}, header{"X-Id": {"1"}, "Etag": {"a"}}, header{"X-Id": {"2"}}, header{"X-Id": {"2"}, "Etag": {"a"}}},
		{"two values in order", nil, header{"Link": {"b", "a"}}, nil, header{"Link": {"b", "a"}}},
		{"a value added to an outer one", header{"Vary": {"Origin"}}, header{"Vary": {"Origin", "Accept"}}, header{"Vary": {"Origin"}}, header{"Vary": {"Origin", "Accept"}}},
		{"an outer one replaced", header{"Server": {"outer"}}, header{"Server": {"inner"}}, header{"Server": {"outer"}}, header{"Server": {"inner"}}},
		{"an outer one replaced by two", header{"Server": {"outer"}}, header{"Server": {"x", "outer"}}, header{"Server": {"outer"}}, header{"Server": {"x", "outer"}}},
		{"an outer one removed", header{"Server": {"outer"}}, header{}, header{"Server": {"outer"}, "Via": {"1"}}, header{"Via": {"1"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			changes := appendChanges(nil, appendMap(nil, c.before), appendMap(nil, c.after), nil)
			got := maps.Clone(c.replayedOver)
			if got == nil {
				got = header{}
			}
			Response{Status: 200, Header: Header{fields: changes}}.Write(got, new(tape))
			delete(got, "Content-Length")
			if !reflect.DeepEqual(got, c.want) {
				t.Errorf("replayed over %v: %v, want %v", c.replayedOver, got, c.want)
			}
		})
	}
}

func TestR17TrailersAreAnnounced(t *testing.T) {
	t.Parallel()
	header := map[string][]string{
		"Trailer": {"X-Sum, x-other"}, "X-Sum": {"1"}, "X-Other": {"2"}, "Trailer:X-Late": {"3"}, "X-Plain": {"4"},
	}
	var names []string
	for _, f := range appendTrailers(nil, header, header["Trailer"], http11) {
		names = append(names, f.Name)
	}
	slices.Sort(names)
	if want := []string{"X-Late", "X-Other", "X-Sum"}; !slices.Equal(names, want) {
		t.Errorf("trailers are %v, want %v", names, want)
	}
}

// tape is a wire that remembers.
type tape struct {
	header   map[string][]string // read when the status is written
	statuses []int
	sent     map[string][]string
	body     []byte
	writes   int
	fail     error
}

func (w *tape) WriteHeader(status int) {
	w.statuses = append(w.statuses, status)
	w.sent = map[string][]string{}
	for name, values := range w.header {
		w.sent[name] = slices.Clone(values)
	}
}

func (w *tape) Write(p []byte) (int, error) {
	w.writes++
	if w.fail != nil {
		return 0, w.fail
	}
	w.body = append(w.body, p...)
	return len(p), nil
}

// held is a wire that sends its header with the first byte, or at its end, as Gin's does.
type held struct {
	tape

	status int
}

func (w *held) WriteHeader(status int) { w.status = status }

func (w *held) Write(p []byte) (int, error) {
	w.end()
	return w.tape.Write(p)
}

func (w *held) end() {
	if w.sent == nil {
		w.tape.WriteHeader(w.status)
	}
}

// R17: a response that has no body has no trailers in HTTP/1, also where its header has
// not left yet.
func TestR17TrailersAreNoFieldsOfAHeaderThatIsHeld(t *testing.T) {
	t.Parallel()
	for _, v := range []version{http10, http11} {
		for _, status := range []int{204, 304} {
			header := map[string][]string{"Trailer": {"X-Sum"}}
			wire := &held{tape: tape{header: header}}
			x := &Exchange{guard: new(Guard), scratch: new(scratch), version: v}
			rec := &Recorder{x: x, header: header, wire: wire}
			rec.WriteHeader(status)
			header["X-Sum"], header["Trailer:X-Other"] = []string{"1"}, []string{"2"}
			rec.send(Field{}, nil, nil)
			if wire.end(); len(wire.sent) != 1 || wire.sent["Trailer"] == nil || rec.sendsTrailers() {
				t.Errorf("%d: the header is %v", status, wire.sent)
			}
		}
	}
}
