package adaptertest

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
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
}

func TestProgramRefusesUnknownAndContradictoryFields(t *testing.T) {
	t.Parallel()
	for header, want := range map[string]string{
		``:                                             "EOF",
		`[]`:                                           "array",
		`{"stauts":200}`:                               `unknown field "stauts"`,
		`{} {}`:                                        "more than one",
		`{"status":101}`:                               "status is 101",
		`{"status":1000}`:                              "status is 1000",
		`{"delay_ms":-1}`:                              "delay_ms is -1",
		`{"delay_ms":600001}`:                          "delay_ms is 600001",
		`{"chunks":[{"delay_ms":-2}]}`:                 "delay_ms is -2",
		`{"body_size":-1}`:                             "body_size is -1",
		`{"body_size":67108865}`:                       "body_size is 67108865",
		`{"body_base64":"%"}`:                          "base64",
		`{"keep":true,"unknown":"x"}`:                  "unknown beside",
		`{"body":"a","body_size":1}`:                   "more than one of",
		`{"body":"a","body_base64":"YQ=="}`:            "more than one of",
		`{"body":"a","echo":true}`:                     "more than one of",
		`{"headers":[["a"]]}`:                          "a list of 1",
		`{"headers":[["a","b","c"]]}`:                  "a list of 3",
		`{"headers":[["","b"]]}`:                       "without a name",
		`{"trailers":[["","b"]]}`:                      "without a name",
		`{"informational":[{"status":101}]}`:           "informational status is 101",
		`{"informational":[{"status":200}]}`:           "informational status is 200",
		`{"write":"sendfile"}`:                         `write is "sendfile"`,
		`{"behaviour":"exit"}`:                         `behaviour is "exit"`,
		`{"keep":true,"release":true}`:                 "both keep and release",
		`{"behaviour":"error","body":"a"}`:             "leaves the body",
		`{"behaviour":"hijack","echo":true}`:           "makes its own answer",
		`{"behaviour":"hijack","status":201}`:          "hijack answers 200",
		`{"status_only":true}`:                         "status_only needs a status",
		`{"status":200,"status_only":true,"body":"a"}`: "status_only needs a status",
	} {
		p, err := ParseProgram(header)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %+v and error %v, want an error with %q", header, p, err, want)
		}
	}
}

func TestContentIsTheOneBodyOfTheProgram(t *testing.T) {
	t.Parallel()
	for header, want := range map[string]string{
		`{}`:                        "",
		`{"body":"é"}`:              "é",
		`{"body_base64":"AP8="}`:    "\x00\xff",
		`{"body_size":3}`:           "\x00\x01\x02",
		`{"chunks":[{"body":"a"}]}`: "",
	} {
		p, err := ParseProgram(header)
		if got := string(p.Content()); err != nil || got != want {
			t.Errorf("%s: got %q and error %v, want %q", header, got, err, want)
		}
	}
}

func TestPatternBodyHasEveryByteInEveryStretch(t *testing.T) {
	t.Parallel()
	body := PatternBody(70_000)
	for start := 0; start+256 <= len(body); start += 256 {
		seen := map[byte]bool{}
		for _, b := range body[start : start+256] {
			seen[b] = true
		}
		if len(seen) != 256 {
			t.Fatalf("from %d: %d byte values, want 256", start, len(seen))
		}
	}
	if first, second := fmt.Sprint(body[:256]), fmt.Sprint(body[256:512]); first == second {
		t.Error("two stretches are the same, so that a lost one would not show")
	}
}

func TestDefaultBodyIs256BytesOfJSON(t *testing.T) {
	t.Parallel()
	if !json.Valid([]byte(DefaultBody)) || len(DefaultBody) != 256 {
		t.Errorf("%d bytes, valid JSON: %v; want 256 bytes of JSON", len(DefaultBody), json.Valid([]byte(DefaultBody)))
	}
}
