package adaptertest

import (
	"encoding/json"
	"reflect"
	"testing"
)

func TestProgramSurvivesItsHeader(t *testing.T) {
	t.Parallel()
	p := Program{
		DelayMS: 5, Status: 418, Headers: []Pair{{"A", "1"}, {"A", "2"}}, HeadersAfter: []Pair{{"B", ""}},
		Body: "\x00\x7f\n\"é€😀", Chunks: []Chunk{{DelayMS: 1, Body: "c"}, {}}, Write: WriteCopy,
		Informational: []Interim{{Status: 103, Headers: []Pair{{"Link", "</a>"}}}}, Trailers: []Pair{{"T", "t"}},
		Behaviour: Panics, Effect: true, IgnoreCtx: true, Keep: true, NoBody: true, Report: true, StatusOnly: false,
	}
	header := p.Header()
	for i := range len(header) {
		if header[i] < ' ' || header[i] > '~' {
			t.Fatalf("byte %#x at %d of %q, want printable US-ASCII", header[i], i, header)
		}
	}
	got, err := ParseProgram(header)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, p) {
		t.Errorf("got %+v\nwant %+v", got, p)
	}
	for _, wrong := range []string{"", "[]", "{} {}", `{"stauts":200}`} {
		if got, err := ParseProgram(wrong); err == nil {
			t.Errorf("%q is read as %+v", wrong, got)
		}
	}
}

func TestDefaultBodyIs256BytesOfJSON(t *testing.T) {
	t.Parallel()
	if !json.Valid([]byte(DefaultBody)) || len(DefaultBody) != 256 {
		t.Errorf("%d bytes, valid JSON: %v; want 256 bytes of JSON", len(DefaultBody), json.Valid([]byte(DefaultBody)))
	}
}
