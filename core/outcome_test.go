package reprise

import (
	"fmt"
	"testing"

	"github.com/reprise-go/reprise/core/store"
)

// A request gets the store's answer as its outcome, without a table.
func TestOutcomesOfAStoreKeepTheirNumbers(t *testing.T) {
	t.Parallel()
	for answer, want := range map[store.Outcome]Outcome{
		store.Claimed: Claimed, store.InProgress: InProgress, store.Completed: Replayed, store.Mismatch: Mismatch, store.Lapsed: Lapsed,
	} {
		if got := Outcome(answer); got != want {
			t.Errorf("%v: %v, want %v", answer, got, want)
		}
	}
	if Expired != Lapsed+1 || len(Outcomes()) != int(Failed) {
		t.Errorf("the outcomes %v have gaps, or twice one number", Outcomes())
	}
}

// Logs, metrics, dashboards and alerts rely on these names.
func TestNamesInLogsAndMetrics(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		got  fmt.Stringer
		want string
	}{
		{Claimed, "claimed"},
		{InProgress, "in-progress"},
		{Replayed, "replayed"},
		{Mismatch, "mismatch"},
		{Lapsed, "lapsed"},
		{Expired, "expired"},
		{Unprotected, "unprotected"},
		{Unavailable, "unavailable"},
		{Corrupt, "corrupt"},
		{KeyMissing, "key-missing"},
		{KeyInvalid, "key-invalid"},
		{ScopeMissing, "scope-missing"},
		{RequestTooLarge, "too-large"},
		{RequestInvalid, "request-invalid"},
		{Failed, "internal-error"},
		{Outcome(0), "invalid(0)"},
		{Failed + 1, "invalid(16)"},
		{EndRecorded, "recorded"},
		{EndReleased, "released"},
		{EndUnrecorded, "unrecorded"},
		{EndSuperseded, "superseded"},
		{EndContested, "contested"},
		{EndNotApplied, "not-applied"},
		{EndUndecided, "undecided"},
		{EndDropped, "dropped"},
		{EndUnknown, "unknown"},
		{EndUnknown + 1, "invalid(10)"},
		{Recoverable, "recoverable"},
		{AtMostOnce, "at-most-once"},
		{store.Claimed, "claimed"},
		{store.Completed, "completed"},
		{store.Expired, "expired"},
		{store.Expired + 1, "invalid(7)"},
		{store.Renewed, "renewed"},
		{store.RenewBusy, "busy"},
		{store.RenewCompleted, "completed"},
		{store.RenewLost, "lost"},
		{store.Warning, "warning"},
		{store.Unsafe, "unsafe"},
	} {
		if c.got.String() != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
}

// So are those of events.
func TestNamesOfEvents(t *testing.T) {
	t.Parallel()
	for want, events := range map[string][]Event{
		"claimed":              {{Outcome: Claimed}, {Outcome: Claimed, Attempt: 1}},
		"takeover":             {{Outcome: Claimed, Attempt: 2}},
		"replayed":             {{Outcome: Replayed}},
		"in-progress":          {{Outcome: InProgress}},
		"mismatch":             {{Outcome: Mismatch}},
		"lapsed":               {{Outcome: Lapsed}},
		"expired":              {{Outcome: Expired}},
		"unprotected":          {{Outcome: Unprotected}},
		"refused":              {{Outcome: Unavailable}, {Outcome: Corrupt}, {Outcome: KeyMissing}, {Outcome: KeyInvalid}, {Outcome: ScopeMissing}, {Outcome: RequestTooLarge}, {Outcome: RequestInvalid}, {Outcome: Failed}},
		"completed":            {{End: EndRecorded}},
		"released":             {{End: EndReleased}},
		"unrecorded":           {{End: EndUnrecorded}},
		"superseded":           {{End: EndSuperseded}},
		"contested":            {{End: EndContested}},
		"not-applied":          {{End: EndNotApplied}},
		"undecided":            {{End: EndUndecided}},
		"dropped":              {{End: EndDropped}},
		"unknown":              {{End: EndUnknown}},
		"renewed":              {{Kind: EventRenewed}},
		"lease-lost":           {{Kind: EventLeaseLost}},
		"run-too-long":         {{Kind: EventRunTooLong}},
		"store-error":          {{Kind: EventStoreError}},
		"panic":                {{Kind: EventPanic}},
		"resolved":             {{Kind: EventResolved}},
		"blob-error":           {{Kind: EventBlobError}},
		"description-withheld": {{Kind: EventDescription}},
		"error-reported":       {{Kind: EventReported}},
		"body-consumed":        {{Kind: EventBodyConsumed}},
		"body-omitted":         {{Kind: EventBodyOmitted}},
		"invalid(200)":         {{Kind: 200}},
	} {
		for _, e := range events {
			if got := e.Name(); got != want {
				t.Errorf("%v, %v, %v: %q, want %q", e.Outcome, e.End, e.Kind, got, want)
			}
		}
	}
}
