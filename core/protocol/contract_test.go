package protocol

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/store"
)

var updateContract = flag.Bool("update", false, "write the files of testdata/contract")

// contracts are the policies whose contracts are in testdata/contract.
var contracts = map[string]Config{
	"default": {},
	"payments": {
		Name: "payments", Key: KeyHeader("Payment-Key", "X-Payment-Key", "X-Request-Key"), KeyMode: Strict, Limits: Limits{Key: 64, RequestBody: 10_000},
		Methods: []string{"POST", "PUT", "DELETE"}, Required: true, Preset: reprise.AtMostOnce, Retention: 30 * 24 * time.Hour, Horizon: 335 * 24 * time.Hour, Wait: 5 * time.Second,
		Fingerprint: Fingerprinting{Func: CanonicalJSON, Headers: []string{"Host", "Api-Version"}}, Keep: Keeping{Headers: []string{"Location", "ETag"}},
		Announce: Announcing{Expires: true, PolicyURL: "https://api.example.com/idempotency"}, Problems: ProblemFormat{Base: "https://api.example.com/problems/"},
	},
	"own-errors": {
		Endpoint: "orders", MaxAttempts: 3, Oversize: Unavailable, FailOpen: true, Limits: Limits{Key: 4096}, Retention: time.Hour,
		Select: func(context.Context, *Request) *Guard { return nil },
		Keep:   Keeping{Decide: func(status int) Decision { return map[bool]Decision{true: ReleaseKey, false: ByPreset}[status >= 400] }},
		Fingerprint: Fingerprinting{Func: func(r *Request, key string, _ []byte) (store.Fingerprint, error) {
			return DefaultFingerprint(r, key, nil)
		}},
		Problems: ProblemFormat{Write: func(context.Context, *Request, Problem) Response { return Response{} }},
	},
}

func contractGuard(t testing.TB, cfg Config) *Guard {
	t.Helper()
	engine, err := reprise.New(memstore.New(), reprise.Config{})
	if err != nil {
		t.Fatal(err)
	}
	guard, err := Over(engine, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return guard
}

// The documents change only when somebody wants it: go test -update.
func TestContractDocuments(t *testing.T) {
	t.Parallel()
	for name, cfg := range contracts {
		policy := contractGuard(t, cfg).Policy()
		for ending, got := range map[string][]byte{"json": policy.OpenAPIJSON(), "yaml": policy.OpenAPIYAML(), "md": policy.Markdown()} {
			path := filepath.Join("testdata", "contract", name+"."+ending)
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
				t.Errorf("%s is not current: run go test ./core/protocol -run TestContractDocuments -update\n%s", path, got)
			}
		}
		if !json.Valid(policy.OpenAPIJSON()) {
			t.Errorf("%s: no JSON", name)
		}
	}
}

// No name or text of a policy becomes markup of the page, or ends its table or sentence.
func TestPageShowsNamesAsTheyAre(t *testing.T) {
	t.Parallel()
	policy := contractGuard(t, Config{
		Key: KeyHeader("X|Key`", "*A*"), Methods: []string{"POST", "M*`|_"}, Fingerprint: Fingerprinting{Headers: []string{"a`|b"}}, Keep: Keeping{Headers: []string{"``|"}},
		Endpoint: "a`|<b>\r\n\n# orders",
	}).Policy()
	policy.Problems = []Problem{{Code: "a|b", Status: 409, Detail: "<b>|`x`*_[y](z)\n&amp;\u2028"}}
	page := string(policy.Markdown())
	for _, want := range []string{
		"Send the header `` X|Key` `` with", "``X|Key`: 8e03978e-", "accepted as `*A*`.", "* POST and M\\*\\`\\|\\_ requests",
		"must be the same too: ``a`|b``.", "and: ``` ``| ```.", "endpoint (``a`|<b>   # orders`` here)",
		"\n| `a\\|b` | 409 | no | \\<b\\>\\|\\`x\\`\\*\\_\\[y\\](z) \\&amp;  |\n",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page has no %q:\n%s", want, page)
		}
	}
	if only := string(contractGuard(t, Config{Keep: Keeping{Headers: []string{}}}).Policy().Markdown()); !strings.Contains(only, "only the media type and the coding.\n") {
		t.Errorf("with no other field kept:\n%s", only)
	}
}

// A policy that offloads bodies still has summaries: of what it could not store.
func TestContractOfAPolicyThatOffloads(t *testing.T) {
	t.Parallel()
	policy := contractGuard(t, Config{Offload: Offloading{Blobs: blobs{}, MaxBody: 8 << 20}}).Policy()
	page := string(policy.Markdown())
	want := "* Of a body of more than 8 MiB, and of one of more than 1 MiB that could not be stored, retries get `{\"status\":\"completed\"}`"
	if !strings.Contains(page, want) || !strings.Contains(page, "| `Idempotency-Body` | omitted |") {
		t.Errorf("the page has no %q, or no Idempotency-Body:\n%s", want, page)
	}
	if !slices.Contains(policy.CORS().ExposeHeaders, "Idempotency-Body") || !strings.Contains(string(policy.OpenAPIJSON()), "IdempotencySummary") {
		t.Error("Idempotency-Body is not exposed, or the summary has no schema")
	}
	refusing := contractGuard(t, Config{Oversize: Unavailable, Offload: Offloading{Blobs: blobs{}, MaxBody: 8 << 20}}).Policy()
	want = "* A body of more than 8 MiB, and one of more than 1 MiB that could not be stored, is not kept: its retries are refused with `result-unavailable`"
	if page := string(refusing.Markdown()); !strings.Contains(page, want) || strings.Contains(page, "Idempotency-Body") {
		t.Errorf("the page has no %q, or an Idempotency-Body:\n%s", want, page)
	}
}

type blobs struct{ BlobStore }

// The policy says what the guard does, status by status, also where a function decides.
func TestPolicyKeepsWhatTheGuardKeeps(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"default": "307–308 401 407–408 425 429 500–599", "payments": "307–308 401 407–408 425 429", "own-errors": "307–308 400–599",
	} {
		policy := contractGuard(t, contracts[name]).Policy()
		var got []string
		for _, r := range policy.NotKept {
			got = append(got, r.String())
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: not kept are %q, want %q", name, got, want)
		}
		if policy.Keeps(401) || !policy.Keeps(201) {
			t.Errorf("%s: keeps 401: %v, 201: %v", name, policy.Keeps(401), policy.Keeps(201))
		}
	}
	bad := contractGuard(t, Config{Keep: Keeping{Decide: func(int) Decision { panic("a bug") }}}).Policy()
	if bad.Keeps(200) {
		t.Error("a policy whose Decide panics keeps 200")
	}
}

func TestPolicyHasTheRefusalsThatItCanGive(t *testing.T) {
	t.Parallel()
	has := func(p Policy, code Code) bool { return strings.Contains(string(p.OpenAPIJSON()), `"`+string(code)+`"`) }
	plain, payments := contractGuard(t, Config{}).Policy(), contractGuard(t, contracts["payments"]).Policy()
	for code, want := range map[Code][2]bool{
		CodeKeyMissing: {false, true}, CodeOutcomeUnknown: {false, true}, CodeInProgress: {true, true}, CodeNotApplied: {false, false},
	} {
		if got := [2]bool{has(plain, code), has(payments, code)}; got != want {
			t.Errorf("%s: %v, want %v", code, got, want)
		}
	}
}

func TestCORSOfAPolicy(t *testing.T) {
	t.Parallel()
	got := contractGuard(t, contracts["payments"]).Policy().CORS()
	want := CORS{
		AllowHeaders:  []string{"Payment-Key", "X-Payment-Key", "X-Request-Key"},
		ExposeHeaders: []string{"Idempotent-Replayed", "Idempotency-Status", "Idempotency-Body", "Idempotency-Key-Expires", "Retry-After", "Link"},
		AllowMethods:  []string{"POST", "PUT", "DELETE"},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v\nwant %+v", got, want)
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
	type grammar struct {
		policy  Policy
		pattern *regexp.Regexp
		grammar keyGrammar
	}
	var all []grammar
	for _, mode := range []KeyMode{Compat, Strict} {
		g := contractGuard(f, Config{KeyMode: mode, Limits: Limits{Key: 36}})
		p := g.Policy()
		all = append(all, grammar{p, regexp.MustCompile(p.KeyPattern()), g.grammar})
	}
	f.Fuzz(func(t *testing.T, key string) {
		if key != trimSpace(key) {
			return // a server trims the value before anybody compares it
		}
		for _, g := range all {
			_, err := g.grammar.parse(key)
			matches := g.pattern.MatchString(key) && len(key) <= g.policy.KeyMaxLength()
			if err == nil && !matches || err != nil && matches && !strings.Contains(key, `";`) {
				t.Errorf("%q: the guard says %v, the pattern %v", key, err, matches)
			}
		}
	})
}

func TestSpansAndSizesAsPeopleSayThem(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		24 * time.Hour: "24 hours", 48 * time.Hour: "2 days", time.Hour: "1 hour", 90 * time.Minute: "90 minutes",
		time.Second: "1 second", 1500 * time.Millisecond: "1.5s", time.Millisecond: "1ms",
	} {
		if got := span(d); got != want {
			t.Errorf("span(%v) = %q, want %q", d, got, want)
		}
	}
	for n, want := range map[int]string{1 << 20: "1 MiB", 3 << 10: "3 KiB", 1000: "1000 bytes"} {
		if got := size(n); got != want {
			t.Errorf("size(%d) = %q, want %q", n, got, want)
		}
	}
}

// A regular expression counts up to 1,000 everywhere; a longer key is bounded by its
// length alone.
func TestPatternCountsAsFarAsItCan(t *testing.T) {
	t.Parallel()
	for most, want := range map[int]string{36: "{1,36}", 1000: "{1,1000}", 1001: "+", 4096: "+"} {
		p := contractGuard(t, Config{Limits: Limits{Key: most}}).Policy()
		if pattern := p.KeyPattern(); strings.Contains(pattern, "{1,") != (want != "+") || !strings.Contains(pattern, `=-]`+want+`|`) {
			t.Errorf("up to %d: %s, want %s", most, pattern, want)
		}
	}
}

// A page that has nothing to list says nothing of it.
func TestPageOfAPolicyThatKeepsEverything(t *testing.T) {
	t.Parallel()
	const line = "are not kept, and the next request with the key runs"
	all := contractGuard(t, Config{Keep: Keeping{Decide: func(int) Decision { return KeepResponse }}}).Policy()
	if page := string(all.Markdown()); len(all.NotKept) != 0 || strings.Contains(page, line) {
		t.Errorf("not kept are %v:\n%s", all.NotKept, page)
	}
	if page := string(contractGuard(t, Config{}).Policy().Markdown()); !strings.Contains(page, line) {
		t.Errorf("the page does not say what is not kept:\n%s", page)
	}
}

// YAML takes some words for anything but text.
func TestTextOfYAMLIsQuotedWhereItHasTo(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"a": "a", "z": "z", "A": "A", "Z": "Z", "zone/7-b": "zone/7-b", "application/json": "application/json",
		"": `""`, "7": `"7"`, "1e3": `"1e3"`, "-a": `"-a"`, "/a": `"/a"`, "a b": `"a b"`, "a:": `"a:"`, "No": `"No"`, "null": `"null"`, "y": `"y"`, "<&>": `"<&>"`,
	} {
		if got := plain(text); got != want {
			t.Errorf("%q is written %s, want %s", text, got, want)
		}
	}
}
