package contract

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/store"
)

var updateContract = flag.Bool("update", false, "write the files of testdata")

// contracts are the policies whose contracts are in testdata.
var contracts = map[string]protocol.Config{
	"default": {},
	"payments": {
		Label: "payments", Key: protocol.KeyHeader("Payment-Key", "X-Payment-Key", "X-Request-Key"), KeyMode: protocol.Strict, Limits: protocol.Limits{Key: 64, RequestBody: 10_000},
		Methods: []string{"POST", "PUT", "DELETE"}, Required: true, Preset: reprise.AtMostOnce, Retention: 30 * 24 * time.Hour, Horizon: 335 * 24 * time.Hour, Wait: 5 * time.Second,
		Fingerprint: protocol.Fingerprinting{Func: protocol.CanonicalJSON, Headers: []string{"Host", "Api-Version"}, Omit: []string{"/sent_at", "/meta/a~1b"}}, Keep: protocol.Keeping{Headers: []string{"Location", "ETag"}},
		Expires: true, Problems: protocol.ProblemFormat{Base: "https://api.example.com/problems/"},
	},
	"body-key": {
		Key: protocol.KeyField("/idempotency_key"), Required: true, Preset: reprise.AtMostOnce,
	},
	"nested-key": {Key: protocol.KeyField("/meta/a~1b"), KeyMode: protocol.Strict},
	"parameter":  {Key: protocol.KeyParam("request_id"), Required: true},
	"content":    {Key: protocol.KeyContent(5 * time.Minute), Fingerprint: protocol.Fingerprinting{Func: protocol.CanonicalJSON, Omit: []string{"/sent_at"}}},
	"own-errors": {
		Endpoint: "orders", MaxAttempts: 3, Oversize: protocol.Unavailable, FailOpen: true, Limits: protocol.Limits{Key: 4096}, Retention: time.Hour,
		Skip: func(context.Context, *protocol.Request) bool { return false },
		Keep: protocol.Keeping{Decide: func(e protocol.Ending) protocol.Decision {
			return map[bool]protocol.Decision{true: protocol.ReleaseKey, false: protocol.ByPreset}[e.Status >= 400]
		}},
		Fingerprint: protocol.Fingerprinting{Func: func(r *protocol.Request, key string, _ []byte) (store.Fingerprint, error) {
			return protocol.DefaultFingerprint(r, key, nil)
		}},
		Problems: protocol.ProblemFormat{Write: func(context.Context, *protocol.Request, protocol.Problem) protocol.Response {
			return protocol.Response{}
		}},
	},
}

func contractGuard(t testing.TB, cfg protocol.Config) *protocol.Guard {
	t.Helper()
	guard, err := protocol.New(memstore.New(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return guard
}

// The documents change on request only: go test -update.
func TestContractDocuments(t *testing.T) {
	t.Parallel()
	for name, cfg := range contracts {
		policy := Of(contractGuard(t, cfg))
		for ending, got := range map[string][]byte{"json": policy.OpenAPIJSON(), "md": policy.Markdown()} {
			path := filepath.Join("testdata", name+"."+ending)
			if *updateContract {
				if err := os.WriteFile(path, got, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, want) {
				t.Errorf("%s is not current: run go test ./core/protocol/contract -run TestContractDocuments -update\n%s", path, got)
			}
		}
		if !json.Valid(policy.OpenAPIJSON()) {
			t.Errorf("%s: no JSON", name)
		}
	}
}

// The policy describes the guard's behaviour, status by status, also where a function
// decides.
func TestPolicyAgreesWithTheGuard(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"default": "307–308 401 407–408 425 429 499–599", "payments": "401 407 425 429", "own-errors": "307–308 400–599",
	} {
		policy := Of(contractGuard(t, contracts[name]))
		var got []string
		for _, r := range policy.NotKept {
			got = append(got, r.String())
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: not kept are %q, want %q", name, got, want)
		}
	}
	bad := Of(contractGuard(t, protocol.Config{Keep: protocol.Keeping{Decide: func(protocol.Ending) protocol.Decision { panic("a bug") }}}))
	if len(bad.NotKept) != 1 || bad.NotKept[0].From != 200 {
		t.Errorf("of a policy whose Decide panics are not kept %v", bad.NotKept)
	}
}

// Every key that the guard accepts matches the pattern of its contract, and without
// parameters every key that matches is accepted.
func FuzzKeyPattern(f *testing.F) {
	for _, key := range []string{
		"8e03978e", `"8e03978e"`, `"a\"b\\c"`, `"a";p=1`, `"a" ;p`, "", `""`, "a b", `"a b"`, `"a`, `a"`, `"a\b"`, "a;b", "ä", "\"\x7f\"", `"[]"`, `"]\\["`,
		strings.Repeat("a", 36), strings.Repeat("a", 37), `"` + strings.Repeat(`\"`, 36) + `"`, `"` + strings.Repeat(`\"`, 37) + `"`,
	} {
		f.Add(key)
	}
	type published struct {
		guard   *protocol.Guard
		policy  Policy
		pattern *regexp.Regexp
	}
	var all []published
	for _, mode := range []protocol.KeyMode{protocol.Compat, protocol.Strict} {
		g := contractGuard(f, protocol.Config{KeyMode: mode, Limits: protocol.Limits{Key: 36}})
		p := Of(g)
		all = append(all, published{g, p, regexp.MustCompile(p.KeyPattern())})
	}
	f.Fuzz(func(t *testing.T, key string) {
		if key != strings.Trim(key, " \t") {
			return // a server trims the value before it is compared
		}
		for _, c := range all {
			accepted := accepts(t, c.guard, key)
			matches := c.pattern.MatchString(key) && len(key) <= c.policy.KeyMaxLength()
			if accepted && !matches || !accepted && matches && !strings.Contains(key, `";`) {
				t.Errorf("%q: the guard accepts it: %v, the pattern matches: %v", key, accepted, matches)
			}
		}
	})
}

// accepts reports whether a guard accepts a key. It asks without a scope, which is
// checked after the key and before anything runs.
func accepts(t *testing.T, g *protocol.Guard, key string) bool {
	t.Helper()
	request := protocol.Request{Method: "POST", Path: "/", Header: http.Header{"Idempotency-Key": {key}}}
	switch a := g.Admit(t.Context(), request, func() (string, error) { return "", nil }); a.Response.Status {
	case 403:
		return true
	case 400:
		return false
	default:
		t.Fatalf("%q: %+v", key, a)
		return false
	}
}

// A regular expression counts up to 1,000 everywhere; a longer key is bounded by its
// length alone.
func TestPatternCountsAsFarAsItCan(t *testing.T) {
	t.Parallel()
	for most, want := range map[int]string{36: "{1,36}", 1000: "{1,1000}", 1001: "+", 4096: "+"} {
		p := Of(contractGuard(t, protocol.Config{Limits: protocol.Limits{Key: most}}))
		if pattern := p.KeyPattern(); strings.Contains(pattern, "{1,") != (want != "+") || !strings.Contains(pattern, `=-]`+want+`|`) {
			t.Errorf("up to %d: %s, want %s", most, pattern, want)
		}
	}
}
