package contract

import (
	"strings"
	"testing"

	"github.com/reprise-go/reprise/core/protocol"
)

func TestPolicyHasTheRefusalsThatItCanGive(t *testing.T) {
	t.Parallel()
	has := func(p Policy, code protocol.Code) bool {
		return strings.Contains(string(p.OpenAPIJSON()), `"`+string(code)+`"`)
	}
	plain, payments := Of(contractGuard(t, protocol.Config{})), Of(contractGuard(t, contracts["payments"]))
	for code, want := range map[protocol.Code][2]bool{
		protocol.CodeKeyMissing: {false, true}, protocol.CodeOutcomeUnknown: {true, true}, protocol.CodeInProgress: {true, true}, protocol.CodeNotApplied: {false, false},
	} {
		if got := [2]bool{has(plain, code), has(payments, code)}; got != want {
			t.Errorf("%s: %v, want %v", code, got, want)
		}
	}
}
