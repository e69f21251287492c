package adaptertest

import (
	"slices"
	"testing"

	"github.com/reprise-go/reprise/conformance/internal/suite"
)

// Failure runs one case on a fixture without failing tb. It returns whether the case
// failed, and its log. Tests of the suite use it to show that broken adapters fail.
func Failure(tb testing.TB, id string, f Fixture) (failed bool, text string) {
	tb.Helper()
	i := slices.IndexFunc(cases, func(c testCase) bool { return c.ID == id })
	if i < 0 {
		tb.Fatalf("there is no case %s for adapters", id)
	}
	if err := f.check(); err != nil {
		tb.Fatal(err)
	}
	got := suite.Record(tb, func(tb testing.TB) { cases[i].judge(tb, f) })
	return got.Failed(), got.Text()
}
