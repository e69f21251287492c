package protocol

import (
	"slices"
	"strings"
	"testing"

	reprise "github.com/reprise-go/reprise/core"
)

func TestR27bFlawsOfAHeaderSection(t *testing.T) {
	t.Parallel()
	const start, end = "Host: test\r\nIdempotency-Key: k\r\n", "X-Last: 1\r\n"
	for _, tc := range []struct {
		lines  string
		http10 bool
		want   flaw
	}{
		{lines: "", want: sound},
		{lines: "Content-Length: 0\r\n", want: sound},
		{lines: "content-LENGTH:\t18446744073709551616 \r\n", want: sound}, // too long a body has its own problem
		{lines: "Transfer-Encoding: chunked\r\n", want: sound},
		{lines: "transfer-encoding:CHUNKED\r\n", want: sound},
		{lines: "X-Empty:\r\nX-Odd: \x01\x7f\xff\ta:b\r\n", want: sound},
		{lines: "Content-Length: 5\r\n", http10: true, want: sound},
		{lines: "\r\n", want: sound},

		{lines: "Transfer-Encoding: chunked\r\n", http10: true, want: ambiguous},
		{lines: "Content-Length: 5\r\nContent-Length: 6\r\n", want: ambiguous},
		{lines: "Content-Length: 5, 5\r\n", want: ambiguous},
		{lines: "Content-Length: +5\r\n", want: ambiguous},
		{lines: "Content-Length: \r\n", want: ambiguous},
		{lines: "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", want: ambiguous},
		{lines: "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", want: ambiguous},
		{lines: "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", want: ambiguous},
		{lines: "Transfer-Encoding: gzip, chunked\r\n", want: ambiguous},
		{lines: "Content-Length: 5\r\nContent-Length: 5\r\n", want: ambiguous},
		{lines: "Content-Length: 0x5\r\n", want: ambiguous},
		{lines: "Content-Length: -1\r\n", want: ambiguous},
		{lines: "Transfer-Encoding: xchunked\r\n", want: ambiguous},
		{lines: "Transfer-Encoding: identity\r\n", want: ambiguous},
		{lines: "Transfer-Encoding: chunked;q=1\r\n", want: ambiguous},
		{lines: "Transfer-Encoding: \x0bchunked\r\n", want: ambiguous},
		{lines: "Transfer-Encoding:\r\n", want: ambiguous},
		{lines: "X-One: 1\nX-Two: 2\r\n", want: ambiguous},

		{lines: "X-One: 1\r\n folded\r\n", want: malformed},
		{lines: "X-One: 1\r\n\tTransfer-Encoding: chunked\r\n", want: malformed},
		{lines: "no colon\r\n", want: malformed},
		{lines: ": no name\r\n", want: malformed},
		{lines: "X One: 1\r\n", want: malformed},
		{lines: "X-One : 1\r\n", want: malformed},
		{lines: "Idempotency-Key\x00: k\r\n", want: malformed},
		{lines: "\x0bContent-Length: 5\r\n", want: malformed},
		{lines: "X-One: 1\rX-Two: 2\r\n", want: malformed},
		{lines: "X-One: 1\x00\r\n", want: malformed},
		{lines: "X-One: 1\r\r\n", want: malformed},
		{lines: "Content-Length: 5\nContent-Length: 6\r\nX\x00: 1\r\n", want: malformed},
	} {
		if got := HeaderSection(start + tc.lines + end).flaw(tc.http10); got != tc.want {
			t.Errorf("%q has the flaw %d, want %d", tc.lines, got, tc.want)
		}
	}
	if got := HeaderSection("").flaw(true); got != sound {
		t.Errorf("no section has the flaw %d", got)
	}
}

func TestR7CountsTheLinesOfAHeaderSection(t *testing.T) {
	t.Parallel()
	s := HeaderSection("Host: a\r\nx-one:1\r\nX-ONE: 2\nX-One\x00: 3\r\nX-Ones: 4\r\n: X-One\r\nX-One\r\n\r\n")
	for name, want := range map[string]int{"X-One": 3, "host": 1, "x-ones": 1, "X-Two": 0} {
		if got := s.Count(name); got != want {
			t.Errorf("%d lines of %s, want %d", got, name, want)
		}
	}
	if got := slices.Collect(s.Values("x-one")); !slices.Equal(got, []string{"1", "2", ""}) {
		t.Errorf("the values of X-One are %q", got)
	}
}

// An ambiguous or malformed request with a key is refused, and its connection closed. The
// refusal names first the mistake that the client can correct: a missing, repeated or
// malformed key comes before the framing.
func TestR27bAmbiguousRequestsAreRefused(t *testing.T) {
	t.Parallel()
	const sound, ambiguous, malformed = "A: 1\r\n", "Content-Length: 1\r\nContent-Length: 2\r\n", "A: 1\r\n b\r\n"
	const passes = Code("")
	for _, required := range []bool{false, true} {
		missing := map[bool]Code{true: CodeKeyMissing}[required]
		g := callGuard(t, Config{Required: required}, nil)
		for _, c := range []struct {
			method  string
			keys    []string
			section string
			want    Code
			says    string // in the detail
			closes  bool
		}{
			{"POST", nil, sound, missing, "", false},
			{"POST", nil, ambiguous, missing, "", required},
			{"POST", nil, malformed, CodeRequestInvalid, "", true}, // whether it has a key is not known (R8)
			{"GET", []string{"k"}, malformed, passes, "", false},
			{"POST", []string{"k"}, ambiguous, CodeRequestInvalid, "", true},
			{"POST", []string{"k"}, malformed, CodeRequestInvalid, "", true},
			{"POST", []string{"k", "k"}, sound, CodeKeyInvalid, "more than once", false},
			{"POST", []string{"k", "k"}, malformed, CodeKeyInvalid, "more than once", true},
			{"POST", []string{"not a key"}, sound, CodeKeyInvalid, "quoted string", false},
			{"POST", []string{"not a key"}, ambiguous, CodeKeyInvalid, "quoted string", true},
		} {
			got := g.Admit(t.Context(), Request{Method: c.method, Path: "/", Header: lines{"Idempotency-Key": c.keys}, Section: HeaderSection(c.section)}, unscoped)
			if c.want == passes {
				if !got.Pass {
					t.Errorf("%s %q, %q: %+v, want that it passes", c.method, c.keys, c.section, got)
				}
				continue
			}
			closing, _ := got.Response.Header.Get("Connection")
			if d := decodeProblem(t, got.Response); d.Code != string(c.want) || !strings.Contains(d.Detail, c.says) || (closing == "close") != c.closes {
				t.Errorf("%q, %q: %s %q, Connection %q, want %s %q", c.keys, c.section, d.Code, d.Detail, closing, c.want, c.says)
			}
		}
	}
}

// Every row of the table of outcomes, and every status that a row names.
func TestR31FateOfAResponse(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name                    string
		end                     exit
		status                  []int
		handler, policy         Decision
		recoverable, atMostOnce resolution
	}{
		{"kept by default", returned, []int{200, 201, 204, 302, 303, 304, 400, 404, 409, 422, 498, 600}, ByPreset, ByPreset, keep, keep},
		{"nothing was processed", returned, []int{401, 407, 425, 429}, ByPreset, ByPreset, release, release},
		{"the client resends the key, and something may have run", returned, []int{307, 308, 408}, ByPreset, ByPreset, release, keep},
		{"the server cancelled it", returned, []int{499}, ByPreset, ByPreset, release, keep},
		{"the engine cancelled it", cancelled, []int{400, 401, 404, 409, 425, 429, 499}, ByPreset, ByPreset, release, keep},
		{"the engine cancelled it, and the handler keeps it", cancelled, []int{404, 499}, KeepResponse, ByPreset, keep, keep},
		{"the engine cancelled it, and the handler releases it", cancelled, []int{404, 499}, ReleaseKey, ByPreset, release, release},
		{"the engine cancelled it, and the handler does not know", cancelled, []int{404, 499}, OutcomeUnknown, ByPreset, unknown, unknown},
		{"the engine cancelled it, and the policy keeps it", cancelled, []int{404, 499}, ByPreset, KeepResponse, keep, keep},
		{"the engine cancelled it, and the policy does not know", cancelled, []int{404, 499}, ByPreset, OutcomeUnknown, unknown, unknown},
		{"failed", returned, []int{500, 502, 503, 504, 599}, ByPreset, ByPreset, release, keep},
		{"failed, and the handler keeps it", returned, []int{500}, KeepResponse, ByPreset, keep, keep},
		{"failed, and the policy keeps it", returned, []int{500}, ByPreset, KeepResponse, keep, keep},
		{"returned, and the policy releases it", returned, []int{200}, ByPreset, ReleaseKey, release, release},
		{"the handler speaks before the policy", returned, []int{200}, KeepResponse, ReleaseKey, keep, keep},
		{"returned, and the handler releases it", returned, []int{200}, ReleaseKey, KeepResponse, release, release},
		{"returned, and the handler does not know", returned, []int{200, 401, 504}, OutcomeUnknown, KeepResponse, unknown, unknown},
		{"returned, and the policy does not know", returned, []int{200, 401, 504}, ByPreset, OutcomeUnknown, unknown, unknown},
		{"the handler knows more than the policy", returned, []int{504}, KeepResponse, OutcomeUnknown, keep, keep},
		{"the handler released what the policy does not know", returned, []int{504}, ReleaseKey, OutcomeUnknown, release, release},
		{"panicked, and the handler does not know", panicked, []int{0}, OutcomeUnknown, ByPreset, unknown, unknown},
		{"cut short, and the handler does not know", cut, []int{200}, OutcomeUnknown, ByPreset, unknown, unknown},
		{"panicked", panicked, []int{0}, ByPreset, ByPreset, release, keepEmpty},
		{"panicked after asking to keep", panicked, []int{0}, KeepResponse, ByPreset, release, keepEmpty},
		{"panicked after asking to release", panicked, []int{0}, ReleaseKey, ByPreset, release, release},
		{"cut short", cut, []int{200}, ByPreset, ByPreset, release, keepCut},
		{"cut short after asking to keep", cut, []int{200}, KeepResponse, KeepResponse, release, keepCut},
		{"cut short after asking to release", cut, []int{200}, ReleaseKey, ByPreset, release, release},
	} {
		for _, status := range c.status {
			if got := resolve(c.end, status, reprise.Recoverable, c.handler, c.policy); got != c.recoverable {
				t.Errorf("%s: status %d, Recoverable: resolution %d, want %d", c.name, status, got, c.recoverable)
			}
			if got := resolve(c.end, status, reprise.AtMostOnce, c.handler, c.policy); got != c.atMostOnce {
				t.Errorf("%s: status %d, AtMostOnce: resolution %d, want %d", c.name, status, got, c.atMostOnce)
			}
		}
	}
}

// Large buffers go back to the collector.
func TestLargeBuffersAreNotKept(t *testing.T) {
	t.Parallel()
	for size, kept := range map[int]bool{0: true, 256 << 10: true, 256<<10 + 1: false} {
		if got := again(make([]byte, size)); (got != nil) != kept || len(got) != 0 {
			t.Errorf("of %d bytes, %d are kept", size, cap(got))
		}
	}
}

// A body that may be offloaded grows in few steps, up to the records' limit.
func TestBodiesThatMayBeOffloadedGrowInFewSteps(t *testing.T) {
	t.Parallel()
	grow := func(cfg Config, size int) (steps, room int) {
		g, body := &Guard{cfg: cfg, offloads: cfg.Offload.writes()}, []byte(nil)
		piece := make([]byte, 1000)
		for len(body) < size {
			before := cap(body)
			if body = append(g.room(body, len(piece)), piece...); cap(body) != before {
				steps++
			}
		}
		return steps, cap(body)
	}
	const limit = 1 << 20
	plain, _ := grow(Config{Limits: Limits{ResponseBody: limit}}, limit-1000)
	offloading := Config{Limits: Limits{ResponseBody: limit}, Offload: Offloading{Blobs: struct{ BlobStore }{}}}
	offloads, room := grow(offloading, limit-1000)
	if offloads > 8 || plain < 2*offloads || room > limit+limit/4 {
		t.Errorf("grew in %d steps to %d bytes; a body that is not offloaded grew in %d", offloads, room, plain)
	}
	g := &Guard{cfg: offloading, offloads: true}
	if body := g.room(nil, copyBuffer/8); body != nil {
		t.Errorf("a small body has room for %d bytes", cap(body))
	}
	if body := g.room(nil, 2*limit); cap(body) < 2*limit {
		t.Errorf("a large piece has room for %d bytes", cap(body))
	}
}
