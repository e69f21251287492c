package protocol

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/reprise-go/reprise/core/store"
)

func setupPolicy(t *testing.T, allow []string) fieldPolicy {
	t.Helper()
	p, err := newFieldPolicy(allow, new(Config).ControlFields())
	if err != nil {
		t.Fatalf("newFieldPolicy(%q): %v", allow, err)
	}
	return p
}

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
	p := setupPolicy(t, nil)
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
	p := setupPolicy(t, nil)
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
		if _, err := newFieldPolicy([]string{"Location", name}, ControlFields{}); !errors.Is(err, store.ErrInvalid) {
			t.Errorf("newFieldPolicy with %q: %v, want ErrInvalid", name, err)
		}
	}
}

func TestFilter(t *testing.T) {
	t.Parallel()
	p := setupPolicy(t, nil)
	for _, c := range []struct {
		name       string
		src, want  []Field
		setCookies int
	}{
		{name: "nothing"},
		{
			name: "order and multiplicity stay",
			src:  sampleFields,
			want: sampleFields,
		},
		{
			name: "Set-Cookie lines are counted",
			src: []Field{
				{Name: "Set-Cookie", Value: "a=1"},
				{Name: "ETag", Value: `"x"`},
				{Name: "set-cookie", Value: "b=2", Add: true},
			},
			want:       []Field{{Name: "ETag", Value: `"x"`}},
			setCookies: 2,
		},
		{
			name: "what Connection names belongs to one hop, wherever it stands",
			src: []Field{
				{Name: "X-Hop", Value: "1"},
				{Name: "Connection", Value: "close, x-hop"},
				{Name: "connection", Value: "\tX-Second ,", Add: true},
				{Name: "X-Second", Value: "2"},
				{Name: "X-Hop-Not", Value: "3"},
			},
			want: []Field{{Name: "X-Hop-Not", Value: "3"}},
		},
		{
			name: "what cannot be sent is dropped",
			src: []Field{
				{Name: "X-A", Value: "ok"},
				{Name: "X-B", Value: "split\r\nX-C: injected"},
				{Name: "X D", Value: "ok"},
				{Name: "X-E", Value: "\x00"},
			},
			want: []Field{{Name: "X-A", Value: "ok"}},
		},
		{
			name: "the next value replaces where the first was dropped",
			src: []Field{
				{Name: "X-A", Value: "bad\n"},
				{Name: "X-A", Value: "bad\r", Add: true},
				{Name: "x-a", Value: "second", Add: true},
				{Name: "X-A", Value: "third", Add: true},
				{Name: "X-B", Value: "bad\n"},
				{Name: "X-B", Value: "set again"},
				{Name: "X-B", Value: "added", Add: true},
			},
			want: []Field{
				{Name: "x-a", Value: "second"},
				{Name: "X-A", Value: "third", Add: true},
				{Name: "X-B", Value: "set again"},
				{Name: "X-B", Value: "added", Add: true},
			},
		},
		{
			name: "the values behind one that was dropped are still added",
			src: []Field{
				{Name: "X-A", Value: "first"},
				{Name: "X-A", Value: "bad\n", Add: true},
				{Name: "X-A", Value: "third", Add: true},
				{Name: "X-B", Value: "bad\n"},
				{Name: "X-C", Value: "first"},
				{Name: "X-C", Value: "second", Add: true},
				{Name: "X-D", Value: "bad\n"},
				{Name: "Vary", Value: "beside that of an outer layer", Add: true},
			},
			want: []Field{
				{Name: "X-A", Value: "first"},
				{Name: "X-A", Value: "third", Add: true},
				{Name: "X-C", Value: "first"},
				{Name: "X-C", Value: "second", Add: true},
				{Name: "Vary", Value: "beside that of an outer layer", Add: true},
			},
		},
		{
			name: "removals stay, of every field but the protocol's own",
			src: []Field{
				{Name: "X-A", Remove: true},
				{Name: "Set-Cookie", Remove: true},
				{Name: "idempotency-status", Remove: true},
				{Name: "X B", Remove: true},
			},
			want: []Field{{Name: "X-A", Remove: true}, {Name: "Set-Cookie", Remove: true}},
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
		p := setupPolicy(t, allow)
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

func BenchmarkFilter(b *testing.B) {
	var p fieldPolicy
	dst := make([]Field, 0, len(sampleFields))
	b.ReportAllocs()
	for b.Loop() {
		p.filter(dst, sampleFields)
	}
}

// The names are part of the protocol: clients look for them.
func TestControlFieldsHaveTheirNames(t *testing.T) {
	t.Parallel()
	want := ControlFields{
		Replayed: "Idempotent-Replayed", Status: "Idempotency-Status", Body: "Idempotency-Body", Expires: "Idempotency-Key-Expires",
	}
	if got := new(Config).ControlFields(); got != want {
		t.Errorf("the control fields are %+v, want %+v", got, want)
	}
}

func TestReplayedHeaderHasNoOtherMeaning(t *testing.T) {
	t.Parallel()
	for name, valid := range map[string]bool{
		"": true, "Idempotent-Replayed": true, "idempotent-replayed": true, "X-Order-Repeated": true, "Idempotency-Replay": true,
		"X Y": false, "X\n": false, "Idempotency-Status": false, "idempotency-body": false, "Idempotency-Key-Expires": false,
		"X-Operation": false, "x-alias": false, "Retry-After": false, "Cache-Control": false, "Link": false, "Location": false,
		"Content-Type": false, "Etag": false, "Set-Cookie": false, "X-Request-Id": false, "Grpc-Status": false, "X-Mark-Bin": false,
	} {
		cfg, err := Config{Key: KeyHeader("X-Operation", "X-Alias"), Announce: Announcing{ReplayedHeader: name}}.withDefaults()
		if valid && (err != nil || cfg.Announce.ReplayedHeader == "") || !valid && !errors.Is(err, store.ErrInvalid) {
			t.Errorf("%q: %q, %v; want it valid: %t", name, cfg.Announce.ReplayedHeader, err, valid)
		}
	}
	control := (&Config{Announce: Announcing{ReplayedHeader: "X-Order-Repeated"}}).ControlFields()
	for _, name := range []string{"x-order-repeated", "Idempotent-Replayed", "Idempotency-Status"} {
		if !control.reserve(name) {
			t.Errorf("a handler may set %s", name)
		}
	}
	if _, err := newFieldPolicy([]string{"X-Order-Repeated"}, control); !errors.Is(err, store.ErrInvalid) {
		t.Errorf("a list of kept fields with the marker: %v", err)
	}
}
