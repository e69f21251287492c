package protocol

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/internal/syntax"
)

const testHeader = "X-Operation-Key"

func setupProblems() problems { return newProblems(defaultProblemBase, KeyHeader(testHeader)) }

func (ps *problems) answerKey(err error) Response {
	return ps.ofKey(testHeader+" header", err).Response()
}

// problemDocument is a problem as a client reads it.
type problemDocument struct {
	Type, Title, Detail, Code string
	Status                    int
	Retryable                 bool
}

func decodeProblem(t *testing.T, r Response) problemDocument {
	t.Helper()
	var members map[string]any
	if err := json.Unmarshal(r.Body, &members); err != nil {
		t.Fatalf("%q is not JSON: %v", r.Body, err)
	}
	want := []string{"code", "detail", "retryable", "status", "title", "type"}
	if got := slices.Sorted(maps.Keys(members)); !slices.Equal(got, want) {
		t.Errorf("the members are %v, want %v", got, want)
	}
	var d problemDocument
	if err := json.Unmarshal(r.Body, &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// wantedCodes is R45, R46's list of retryable problems, and how the problems look to
// clients of RPC and in metrics.
var wantedCodes = []struct {
	code    Code
	status  int
	after   time.Duration // 0: not to be retried
	grpc    string
	outcome reprise.Outcome
}{
	{CodeKeyMissing, 400, 0, "INVALID_ARGUMENT", reprise.KeyMissing},
	{CodeKeyInvalid, 400, 0, "INVALID_ARGUMENT", reprise.KeyInvalid},
	{CodeRequestInvalid, 400, 0, "INVALID_ARGUMENT", reprise.RequestInvalid},
	{CodeScopeMissing, 403, 0, "PERMISSION_DENIED", reprise.ScopeMissing},
	{CodeInProgress, 409, time.Second, "ABORTED", reprise.InProgress},
	{CodeOutcomeUnknown, 409, 0, "FAILED_PRECONDITION", reprise.Lapsed},
	{CodeResultUnavailable, 409, 0, "FAILED_PRECONDITION", 0},
	{CodeResultExpired, 409, 0, "FAILED_PRECONDITION", reprise.Expired},
	{CodeRequestTooLarge, 413, 0, "RESOURCE_EXHAUSTED", reprise.TooLarge},
	{CodeKeyReused, 422, 0, "FAILED_PRECONDITION", reprise.Mismatch},
	{CodeStoreUnavailable, 503, 2 * time.Second, "UNAVAILABLE", reprise.Unavailable},
	{CodeNotApplied, 503, time.Second, "UNAVAILABLE", 0},
	{CodeRecordCorrupt, 500, 0, "DATA_LOSS", reprise.Corrupt},
	{CodeResponseTooLarge, 500, 0, "INTERNAL", 0},
	{CodeInternalError, 500, 0, "INTERNAL", reprise.Failed},
}

// grpcNames are the names of the codes of gRPC that problems have.
var grpcNames = map[uint32]string{
	3: "INVALID_ARGUMENT", 7: "PERMISSION_DENIED", 8: "RESOURCE_EXHAUSTED", 9: "FAILED_PRECONDITION",
	10: "ABORTED", 13: "INTERNAL", 14: "UNAVAILABLE", 15: "DATA_LOSS",
}

func TestR45EveryCodeHasItsProblem(t *testing.T) {
	t.Parallel()
	ps := setupProblems()
	titles := map[string]Code{}
	for _, want := range wantedCodes {
		p := want.code.Problem()
		if p.Status != want.status || p.RetryAfter != want.after || p.Retryable != (want.after > 0) ||
			grpcNames[p.GRPC] != want.grpc || p.Outcome != want.outcome {
			t.Errorf("the table has %+v, want %+v", p, want)
		}
		r := ps.ready[want.code].response
		d := decodeProblem(t, r)
		if r.Status != want.status || d.Status != want.status {
			t.Errorf("%s: status %d, in the body %d; want %d", want.code, r.Status, d.Status, want.status)
		}
		if d.Code != string(want.code) || d.Retryable != p.Retryable || d.Type != defaultProblemBase+string(want.code) {
			t.Errorf("%s: the body is %+v", want.code, d)
		}
		if other, ok := titles[d.Title]; ok || d.Title == "" {
			t.Errorf("%s has the title %q, as has %s", want.code, d.Title, other)
		}
		titles[d.Title] = want.code
		if v, _ := r.Header.Get("Content-Type"); v != "application/problem+json" {
			t.Errorf("%s: Content-Type %q", want.code, v)
		}
		link, linked := r.Header.Get("Link") // R10
		if should := want.code == CodeKeyMissing || want.code == CodeKeyInvalid; linked != should || linked && link != "<"+d.Type+`>; rel="describedby"` {
			t.Errorf("%s: Link %q, want one: %t", want.code, link, should)
		}
		if after, there := p.completed(Response{Status: 418}).Header.Get("Retry-After"); there != (want.after > 0) { // R46
			t.Errorf("%s: Retry-After %q in a form of its own, want one: %t", want.code, after, want.after > 0)
		}
		if want.outcome != 0 && codeOfOutcome(want.outcome) != want.code {
			t.Errorf("%s: the outcome %v has the code %s", want.code, want.outcome, codeOfOutcome(want.outcome))
		}
	}
	if codes := Codes(); len(codes) != len(wantedCodes) {
		t.Errorf("%d codes, want %d", len(codes), len(wantedCodes))
	}
}

func TestR46RetryAfterIsInWholeSecondsRoundedUp(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		1: "1", 25 * time.Millisecond: "1", time.Second: "1", time.Second + 1: "2", 90 * time.Second: "90", 1<<63 - 1: "9223372037",
	} {
		if got := retryAfterField(d).Value; got != want {
			t.Errorf("%v: Retry-After %q, want %q", d, got, want)
		}
	}
}

func TestR45ConfiguredProblemsAreCompleted(t *testing.T) {
	t.Parallel()
	ps := setupProblems()
	p := ps.of(CodeInProgress)
	r := p.completed(Response{Status: 418, Header: NewHeader(Field{Name: "Content-Type", Value: "text/plain"}), Body: []byte(p.Title)})
	if r.Status != 418 || string(r.Body) != "Request in progress" {
		t.Errorf("the writer's response came out as %d %q", r.Status, r.Body)
	}
	for name, want := range map[string]string{"Content-Type": "text/plain", "Cache-Control": "no-store", "Retry-After": "1"} {
		if v, _ := r.Header.Get(name); v != want {
			t.Errorf("%s is %q, want %q", name, v, want)
		}
	}
}

// The types are URIs that people open, so each code is a heading of the page that they
// lead to, and its row there is that of the table.
func TestEveryProblemIsDocumented(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..")
	if _, err := os.Stat(filepath.Join(root, "go.work")); err != nil {
		t.Skip("outside the repository the module has no docs folder")
	}
	page := must(os.ReadFile(filepath.Join(root, "docs", "reference", "problems.md")))
	if n := strings.Count(string(page), "\n## "); n != len(Codes()) {
		t.Errorf("docs/reference/problems.md has %d sections for %d codes", n, len(Codes()))
	}
	var rows strings.Builder
	for _, code := range Codes() {
		p := code.Problem()
		if want := "https://github.com/reprise-go/reprise/blob/main/docs/reference/problems.md#" + string(code); p.Type != want {
			t.Errorf("the type is %s, want %s", p.Type, want)
		}
		retry := "no"
		if p.Retryable {
			retry = fmt.Sprintf("after %d s", p.RetryAfter/time.Second)
		}
		fmt.Fprintf(&rows, "| [%s](#%s) | %d | `%s` | %s | %s |\n", code, code, p.Status, grpcNames[p.GRPC], retry, p.When)
		if !strings.Contains(string(page), fmt.Sprintf("\n## %s\n\n*%s*, %d.\n", code, p.Title, p.Status)) {
			t.Errorf("docs/reference/problems.md has no section %q with the title %q and the status %d", code, p.Title, p.Status)
		}
	}
	if !strings.Contains(string(page), rows.String()) {
		t.Errorf("docs/reference/problems.md does not have these rows:\n%s", rows.String())
	}
}

// FuzzProblem makes the problem of any configuration for any key: the body is always one
// JSON document, does not depend on the client's input, and no field value can end its
// line.
func FuzzProblem(f *testing.F) {
	f.Add(defaultProblemBase, "Idempotency-Key", "\"\x00<script>\"", int64(time.Second))
	f.Add("urn:x\"},{", "X-\\u0000", "key with bytes \xff", int64(-1))
	f.Add("<>&\u2028", "{header}", "a,b", int64(1<<62))
	f.Add("urn:{header}", "{header}{header}", `"{header}"`, int64(999999999))
	f.Fuzz(func(t *testing.T, base, header, line string, after int64) {
		ps := newProblems(base, KeyHeader(header))
		_, keyErr := keyGrammar{mode: Strict, max: defaultKeyLimit}.parse(line)
		answers := []Response{ps.answerKey(keyErr)}
		for _, want := range wantedCodes {
			p := ps.of(want.code)
			p.RetryAfter = time.Duration(after)
			answers = append(answers, ps.ready[want.code].response, p.Response())
		}
		for _, r := range answers {
			d := decodeProblem(t, r)
			if utf8.ValidString(base) && !strings.HasPrefix(d.Type, base) {
				t.Fatalf("the base %q became %q", base, d.Type)
			}
			for f := range r.Header.All() {
				if validURI(base) && !syntax.ValidField(f.Name, f.Value) {
					t.Fatalf("the field %+v cannot be sent", f)
				}
			}
		}
		constant := func(e keyError) bool { return bytes.Equal(ps.answerKey(e).Body, answers[0].Body) }
		if keyErr != nil && !slices.ContainsFunc(keyErrors, constant) {
			t.Fatalf("the answer to %q is none of the constants: %s", line, answers[0].Body)
		}
	})
}
