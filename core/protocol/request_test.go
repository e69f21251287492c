package protocol

import (
	"slices"
	"strings"
	"testing"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
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
		{lines: "Content-Length: 5\r\nContent-Length: 5\r\n", want: ambiguous},
		{lines: "Content-Length: 5, 5\r\n", want: ambiguous},
		{lines: "Content-Length: +5\r\n", want: ambiguous},
		{lines: "Content-Length: 0x5\r\n", want: ambiguous},
		{lines: "Content-Length: -1\r\n", want: ambiguous},
		{lines: "Content-Length: \r\n", want: ambiguous},
		{lines: "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", want: ambiguous},
		{lines: "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", want: ambiguous},
		{lines: "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", want: ambiguous},
		{lines: "Transfer-Encoding: gzip, chunked\r\n", want: ambiguous},
		{lines: "Transfer-Encoding: identity\r\n", want: ambiguous},
		{lines: "Transfer-Encoding: xchunked\r\n", want: ambiguous},
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
		{lines: "X-(One): 1\r\n", want: malformed},
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

func TestR27bAmbiguousRequestsAreRefused(t *testing.T) {
	t.Parallel()
	engine := must(reprise.New(memstore.New(), reprise.Config{}))
	guard := must(Over(engine, Config{}))
	for name, tc := range map[string]struct {
		method, key, section string
		refused              bool
	}{
		"keyed and sound":           {"POST", "k", "A: 1\r\n", false},
		"keyed and ambiguous":       {"POST", "k", "Content-Length: 1\r\nContent-Length: 2\r\n", true},
		"keyed and malformed":       {"POST", "k", "A: 1\r\n b\r\n", true},
		"a bad key and ambiguous":   {"POST", "not a key", "Content-Length: 1\r\nContent-Length: 2\r\n", true},
		"unkeyed and ambiguous":     {"POST", "", "Content-Length: 1\r\nContent-Length: 2\r\n", false},
		"unkeyed and malformed":     {"POST", "", "Idempotency-Key\x00: k\r\n", true}, // whether it has a key is not known (R8)
		"unprotected and malformed": {"GET", "k", "A: 1\r\n b\r\n", false},
	} {
		header := oneLine{}
		if tc.key != "" {
			header["Idempotency-Key"] = tc.key
		}
		got := guard.Admit(t.Context(), Request{
			Method: tc.method, Path: "/" + strings.ReplaceAll(name, " ", "-"), Header: header, Section: HeaderSection(tc.section),
		}, func() (string, error) { return strings.ReplaceAll(name, " ", "-"), nil })
		closing, _ := got.Response.Header.Get("Connection")
		if refused := got.Response.Status == 400 && closing == "close"; refused != tc.refused {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// oneLine is a header with at most one line of a name.
type oneLine map[string]string

func (h oneLine) Values(name string) []string {
	if v, there := h[name]; there {
		return []string{v}
	}
	return nil
}

// A refusal names first the mistake that the client can correct: a missing, repeated or
// malformed key comes before the framing.
func TestRefusalsNameTheKeyBeforeTheFraming(t *testing.T) {
	t.Parallel()
	const sound, ambiguous, malformed = "A: 1\r\n", "A: 1\n", "A: 1\r\n b\r\n"
	g := callGuard(t, Config{Required: true}, nil)
	for _, c := range []struct {
		keys    []string
		section string
		want    Code
		says    string // in the detail
	}{
		{nil, sound, CodeKeyMissing, ""},
		{nil, ambiguous, CodeKeyMissing, ""},
		{nil, malformed, CodeRequestInvalid, ""},
		{[]string{"k"}, ambiguous, CodeRequestInvalid, ""},
		{[]string{"k"}, malformed, CodeRequestInvalid, ""},
		{[]string{"k", "k"}, sound, CodeKeyInvalid, "more than once"},
		{[]string{"k", "k"}, malformed, CodeKeyInvalid, "more than once"},
		{[]string{"not a key"}, sound, CodeKeyInvalid, "quoted string"},
		{[]string{"not a key"}, ambiguous, CodeKeyInvalid, "quoted string"},
	} {
		got := g.Admit(t.Context(), Request{Method: "POST", Path: "/", Header: lines{"Idempotency-Key": c.keys}, Section: HeaderSection(c.section)}, unscoped)
		if d := decodeProblem(t, got.Response); d.Code != string(c.want) || !strings.Contains(d.Detail, c.says) {
			t.Errorf("%q, %q: %s %q, want %s %q", c.keys, c.section, d.Code, d.Detail, c.want, c.says)
		}
	}
}
