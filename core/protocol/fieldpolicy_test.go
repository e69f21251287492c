package protocol

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/reprise-go/reprise/core/internal/record"
	"github.com/reprise-go/reprise/core/store"
)

// neverKeptExamples has a name for every entry of R14 and for the protocol's own fields.
var neverKeptExamples = []string{
	"Connection", "Keep-Alive", "Proxy-Connection", "Proxy-Authenticate", "TE", "Trailer", "Transfer-Encoding", "Upgrade",
	"Date", "Age", "Content-Length", "Alt-Svc", "Set-Cookie", "WWW-Authenticate", "Server-Timing", "RateLimit",
	"RateLimit-Limit", "RateLimit-Policy", "traceparent", "tracestate", "b3", "X-B3-TraceId", "X-B3-Sampled",
	"X-Request-Id", "X-Correlation-Id", "X-Amzn-Trace-Id", "Access-Control-Allow-Origin", "Access-Control-Max-Age",
	"Strict-Transport-Security", "Idempotent-Replayed", "Idempotency-Status", "Idempotency-Body", "Trailer:X-Sum",
	"Access-Control-" + strings.Repeat("x", 100),
}

func TestR14NeverKept(t *testing.T) {
	t.Parallel()
	p := must(newFieldPolicy(nil))
	for _, name := range neverKeptExamples {
		for _, spelled := range []string{name, strings.ToLower(name), strings.ToUpper(name)} {
			if p.keeps(spelled) {
				t.Errorf("%s is kept", spelled)
			}
		}
	}
}

func TestR13OtherFieldsAreKept(t *testing.T) {
	t.Parallel()
	p := must(newFieldPolicy(nil))
	for _, name := range []string{
		"Content-Type", "Content-Encoding", "Content-Language", "Cache-Control", "ETag", "Last-Modified", "Location", "Link", "Vary",
		"Retry-After", "X-Total", "X-B3", "Proxy", "Dates", "Trailers", "Set-Cookies", "Idempotency-Key", strings.Repeat("x", 300),
	} {
		if !p.keeps(name) {
			t.Errorf("%s is not kept", name)
		}
	}
}

func TestAllowListErrorNamesTheForbiddenField(t *testing.T) {
	t.Parallel()
	for _, name := range append([]string{"", "X Y", "X\n", "Größe"}, neverKeptExamples...) {
		if _, err := newFieldPolicy([]string{"Location", name}); !errors.Is(err, store.ErrInvalid) {
			t.Errorf("newFieldPolicy with %q: %v, want ErrInvalid", name, err)
		}
	}
}

func set(name, value string) Field   { return Field{Name: name, Value: value} }
func added(name, value string) Field { return Field{Name: name, Value: value, Add: true} }
func removed(name string) Field      { return Field{Name: name, Remove: true} }

func TestFilter(t *testing.T) {
	t.Parallel()
	p := must(newFieldPolicy(nil))
	for _, c := range []struct {
		name       string
		src, want  []Field
		setCookies int
	}{
		{name: "nothing"},
		{name: "order and multiplicity stay", src: sampleFields, want: sampleFields},
		{
			name:       "Set-Cookie lines are counted",
			src:        []Field{set("Set-Cookie", "a=1"), set("ETag", `"x"`), added("set-cookie", "b=2")},
			want:       []Field{set("ETag", `"x"`)},
			setCookies: 2,
		},
		{
			name: "what Connection names belongs to one hop, wherever it stands",
			src: []Field{
				set("X-Hop", "1"), set("Connection", "close, x-hop"), added("connection", "\tX-Second ,"),
				set("X-Second", "2"), set("X-Hop-Not", "3"),
			},
			want: []Field{set("X-Hop-Not", "3")},
		},
		{
			name: "what cannot be sent is dropped",
			src:  []Field{set("X-A", "ok"), set("X-B", "split\r\nX-C: injected"), set("X D", "ok"), set("X-E", "\x00")},
			want: []Field{set("X-A", "ok")},
		},
		{
			name: "the next value replaces where the first was dropped",
			src: []Field{
				set("X-A", "bad\n"), added("X-A", "bad\r"), added("x-a", "second"), added("X-A", "third"),
				set("X-B", "bad\n"), set("X-B", "set again"), added("X-B", "added"),
			},
			want: []Field{set("x-a", "second"), added("X-A", "third"), set("X-B", "set again"), added("X-B", "added")},
		},
		{
			name: "the values behind one that was dropped are still added",
			src: []Field{
				set("X-A", "first"), added("X-A", "bad\n"), added("X-A", "third"), set("X-B", "bad\n"),
				set("X-C", "first"), added("X-C", "second"), set("X-D", "bad\n"), added("Vary", "beside that of an outer layer"),
			},
			want: []Field{
				set("X-A", "first"), added("X-A", "third"),
				set("X-C", "first"), added("X-C", "second"), added("Vary", "beside that of an outer layer"),
			},
		},
		{
			name: "removals stay, of every field but the protocol's own",
			src:  []Field{removed("X-A"), removed("Set-Cookie"), removed("idempotency-status"), removed("X B")},
			want: []Field{removed("X-A"), removed("Set-Cookie")},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			before := slices.Clone(c.src)
			first := Field{Name: "Already", Value: "there"}
			got, setCookies := p.filter([]Field{first}, c.src)
			if want := append([]Field{first}, c.want...); !slices.Equal(got, want) {
				t.Errorf("kept %v, want %v", got, want)
			}
			if setCookies != c.setCookies {
				t.Errorf("counted %d Set-Cookie lines, want %d", setCookies, c.setCookies)
			}
			if !slices.Equal(c.src, before) {
				t.Errorf("filter changed its source to %v", c.src)
			}
		})
	}
}

func TestFilterDoesNotAllocate(t *testing.T) {
	src := append(slices.Clone(sampleFields),
		Field{Name: "Connection", Value: "close, x-hop"}, Field{Name: "X-Hop", Value: "1"}, Field{Name: "Set-Cookie", Value: "a=1"},
		Field{Name: strings.Repeat("x", 64), Value: "as long as it may be"})
	for _, allow := range [][]string{nil, {"Link"}} {
		p := must(newFieldPolicy(allow))
		dst := make([]Field, 0, len(src))
		kept := 0
		allocs := testing.AllocsPerRun(100, func() {
			out, _ := p.filter(dst, src)
			kept = len(out)
		})
		if allocs != 0 || kept == 0 {
			t.Errorf("allow %q: %v allocations to filter %d fields, want 0", allow, allocs, len(src))
		}
	}
}

// holding is a wire that sends its header with the first byte, or at its end, as Gin's
// does.
type holding struct{ header, sent map[string][]string }

func (w *holding) WriteHeader(int) {}

func (w *holding) Write(p []byte) (int, error) {
	w.end()
	return len(p), nil
}

func (w *holding) end() {
	if w.sent == nil {
		w.sent = maps.Clone(w.header)
	}
}

// R17: a response that has no body has no trailers in HTTP/1, also where its header has
// not left yet.
func TestR17TrailersAreNoFieldsOfAHeaderThatIsHeld(t *testing.T) {
	t.Parallel()
	for _, v := range []version{http10, http11} {
		for _, status := range []int{204, 304} {
			header := map[string][]string{"Trailer": {"X-Sum"}}
			wire := &holding{header: header}
			x := &Exchange{guard: new(Guard), scratch: new(scratch), version: v}
			rec := &Recorder{x: x, header: header, wire: wire, body: x.Capture(-1)}
			rec.WriteHeader(status)
			header["X-Sum"], header["Trailer:X-Other"] = []string{"1"}, []string{"2"}
			rec.send(Field{}, nil)
			if wire.end(); len(wire.sent) != 1 || wire.sent["Trailer"] == nil || rec.sendsTrailers() {
				t.Errorf("%d: the header is %v", status, wire.sent)
			}
		}
	}
}

var sampleFields = []Field{
	{Name: "Content-Type", Value: "application/json"},
	{Name: "Link", Value: "</a>"},
	{Name: "Link", Value: "</b>", Add: true},
	{Name: "X-Empty", Value: ""},
}

// headerForms returns the header of fields in both forms: as built and as read from a
// stored response.
func headerForms(fields []Field) map[string]Header {
	s := must(record.Decode[Field](record.Append(nil, &stored{Status: 200, Fields: fields})))
	return map[string]Header{"built": NewHeader(fields...), "stored": {stored: s.Header}}
}

func TestHeaderAllDoesNotAllocate(t *testing.T) {
	for form, h := range headerForms(sampleFields) {
		total := 0
		allocs := testing.AllocsPerRun(100, func() {
			for f := range h.All() {
				total += len(f.Name) + len(f.Value)
			}
			if v, ok := h.Get("link"); ok {
				total += len(v)
			}
		})
		if allocs != 0 || total == 0 {
			t.Errorf("%s: %v allocations to go over a header, want 0", form, allocs)
		}
	}
}
