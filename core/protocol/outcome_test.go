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
		end                     ending
		status                  []int
		handler, policy         Disposition
		recoverable, atMostOnce fate
	}{
		{"kept by default", whole, []int{200, 201, 204, 302, 303, 304, 400, 404, 409, 422, 499, 600}, Default, Default, keep, keep},
		{"the client has to come back differently", whole, []int{401, 407, 408, 425, 429}, Default, Default, release, release},
		{"the client resends the key elsewhere", whole, []int{307, 308}, Default, Default, release, release},
		{"failed", whole, []int{500, 502, 503, 504, 599}, Default, Default, release, keep},
		{"failed, and the handler keeps it", whole, []int{500}, KeepOutcome, Default, keep, keep},
		{"failed, and the policy keeps it", whole, []int{500}, Default, KeepOutcome, keep, keep},
		{"whole, and the policy releases it", whole, []int{200}, Default, ReleaseKey, release, release},
		{"the handler speaks before the policy", whole, []int{200}, KeepOutcome, ReleaseKey, keep, keep},
		{"whole, and the handler releases it", whole, []int{200}, ReleaseKey, KeepOutcome, release, release},
		{"panicked", panicked, []int{0}, Default, Default, release, keepEmpty},
		{"panicked after asking to keep", panicked, []int{0}, KeepOutcome, Default, release, keepEmpty},
		{"panicked after asking to release", panicked, []int{0}, ReleaseKey, Default, release, release},
		{"cut short", cut, []int{200}, Default, Default, release, keepCut},
		{"cut short after asking to keep", cut, []int{200}, KeepOutcome, KeepOutcome, release, keepCut},
		{"cut short after asking to release", cut, []int{200}, ReleaseKey, Default, release, release},
	} {
		for _, status := range c.status {
			if got := fateOf(c.end, status, reprise.Recoverable, c.handler, c.policy); got != c.recoverable {
				t.Errorf("%s: status %d, Recoverable: fate %d, want %d", c.name, status, got, c.recoverable)
			}
			if got := fateOf(c.end, status, reprise.AtMostOnce, c.handler, c.policy); got != c.atMostOnce {
				t.Errorf("%s: status %d, AtMostOnce: fate %d, want %d", c.name, status, got, c.atMostOnce)
			}
		}
	}
}
