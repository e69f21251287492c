package protocol

import (
	"testing"

	reprise "github.com/reprise-go/reprise/core"
)

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
