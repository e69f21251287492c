// Package suite has the logic that the suites for stores and adapters share: how a case
// and its waiver are judged.
package suite

import (
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/reprise-go/reprise/conformance"
	"github.com/reprise-go/reprise/core/store"
)

// NewID returns an ID that no other case uses.
func NewID() (id store.ID) {
	_, _ = rand.Read(id[:]) // never fails: it ends the program instead
	return id
}

// Clone returns a deep copy of c.
func Clone(c conformance.Case) conformance.Case {
	c.Needs = slices.Clone(c.Needs)
	return c
}

// CheckWaivers reports an invalid waiver.
func CheckWaivers(waivers []conformance.Waiver, cases []conformance.Case) error {
	for _, w := range waivers {
		if w.Reason == "" {
			return fmt.Errorf("conformance: the waiver of %q gives no reason", w.Case)
		}
		if w.Says == "" {
			return fmt.Errorf("conformance: the waiver of %q does not say what the failed case says", w.Case)
		}
		if !slices.ContainsFunc(cases, func(c conformance.Case) bool { return c.ID == w.Case }) {
			return fmt.Errorf("conformance: the waiver of %q names no case of the suite", w.Case)
		}
	}
	return nil
}

// WaiverOf returns the waiver of a case, if there is one.
func WaiverOf(waivers []conformance.Waiver, c conformance.Case) (conformance.Waiver, bool) {
	i := slices.IndexFunc(waivers, func(w conformance.Waiver) bool { return w.Case == c.ID })
	if i < 0 {
		return conformance.Waiver{}, false
	}
	return waivers[i], true
}

// Judge runs a case and reports its result to tb, inverted if the case is waived.
func Judge(tb testing.TB, c conformance.Case, waivers []conformance.Waiver, test func(testing.TB)) {
	tb.Helper()
	if w, waived := WaiverOf(waivers, c); waived {
		got := Record(tb, test)
		switch {
		case got.Skipped():
			tb.Skip(got.Text())
		case got.Failed() && !strings.Contains(got.Text(), w.Says):
			tb.Fatalf("%s\nis waived (%s) and fails otherwise: it does not say %q, but: %s", c, w.Reason, w.Says, got.Text())
		case got.Failed():
			tb.Skipf("waived: %s\n%s\nfailed with: %s", w.Reason, c, got.Text())
		default:
			tb.Fatalf("%s\nis waived and passes: remove its waiver (%s)", c, w.Reason)
		}
	}
	defer func() {
		if tb.Failed() {
			tb.Logf("broken: %s", c)
		}
	}()
	test(tb)
}
