package contract

import (
	"slices"
	"strings"
	"testing"

	"github.com/reprise-go/reprise/core/protocol"
)

// No name or text of a policy becomes markup of the page, or ends its table or sentence.
func TestPageShowsNamesAsTheyAre(t *testing.T) {
	t.Parallel()
	policy := Of(contractGuard(t, protocol.Config{
		Key: protocol.KeyHeader("X|Key`", "*A*"), Methods: []string{"POST", "M*`|_"}, Fingerprint: protocol.Fingerprinting{Headers: []string{"a`|b"}}, Keep: protocol.Keeping{Headers: []string{"``|"}},
		Endpoint: "a`|<b>\r\n\n# orders",
	}))
	policy.Problems = []protocol.Problem{{Code: "a|b", Status: 409, Detail: "<b>|`x`*_[y](z)\n&amp;\u2028"}}
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
	if only := string(Of(contractGuard(t, protocol.Config{Keep: protocol.Keeping{Headers: []string{}}})).Markdown()); !strings.Contains(only, "only the media type and the coding.\n") {
		t.Errorf("with no other field kept:\n%s", only)
	}
}

// A policy that offloads bodies still has summaries: of those that it could not store.
func TestContractOfAPolicyThatOffloads(t *testing.T) {
	t.Parallel()
	policy := Of(contractGuard(t, protocol.Config{Offload: protocol.Offloading{Blobs: blobs{}, MaxBody: 8 << 20}}))
	page := string(policy.Markdown())
	want := "* Of a body of more than 8 MiB, and of one of more than 1 MiB that could not be stored, retries get `{\"status\":\"completed\"}`"
	if !strings.Contains(page, want) || !strings.Contains(page, "| `Idempotency-Body` | omitted |") {
		t.Errorf("the page has no %q, or no Idempotency-Body:\n%s", want, page)
	}
	if !slices.Contains(policy.CORS().ExposeHeaders, "Idempotency-Body") || !strings.Contains(string(policy.OpenAPIJSON()), "IdempotencySummary") {
		t.Error("Idempotency-Body is not exposed, or the summary has no schema")
	}
	refusing := Of(contractGuard(t, protocol.Config{Oversize: protocol.Unavailable, Offload: protocol.Offloading{Blobs: blobs{}, MaxBody: 8 << 20}}))
	want = "* A body of more than 8 MiB, and one of more than 1 MiB that could not be stored, is not kept: its retries are refused with `result-unavailable`"
	if page := string(refusing.Markdown()); !strings.Contains(page, want) || strings.Contains(page, "Idempotency-Body") {
		t.Errorf("the page has no %q, or an Idempotency-Body:\n%s", want, page)
	}
}

type blobs struct{ protocol.BlobStore }

// The page omits empty lists.
func TestPageOfAPolicyThatKeepsEverything(t *testing.T) {
	t.Parallel()
	const line = "are not kept, and the next request with the key runs"
	all := Of(contractGuard(t, protocol.Config{Keep: protocol.Keeping{Decide: func(protocol.Ending) protocol.Decision { return protocol.KeepResponse }}}))
	if page := string(all.Markdown()); len(all.NotKept) != 0 || strings.Contains(page, line) {
		t.Errorf("not kept are %v:\n%s", all.NotKept, page)
	}
	if page := string(Of(contractGuard(t, protocol.Config{})).Markdown()); !strings.Contains(page, line) {
		t.Errorf("the page does not say what is not kept:\n%s", page)
	}
}
