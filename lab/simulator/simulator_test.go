package simulator

import (
	"os"
	"reflect"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/lab/internal/setting"
)

// TestMain gives the simulations one processor: on more, the goroutines that one instant
// wakes continue in random order, and a seed would fix less.
func TestMain(m *testing.M) {
	runtime.GOMAXPROCS(1)
	debug.SetGCPercent(-1) // run collects garbage: a goroutine that helps the collector loses its place
	os.Exit(m.Run())
}

// TestSimulator runs 10,000 simulations, the same ones each time, and fewer under the
// race detector, which makes them slow.
//
//nolint:paralleltest // the simulations need the processor for themselves
func TestSimulator(t *testing.T) {
	n := uint64(10_000)
	if setting.Race {
		n = 200
	}
	total := simulate(t, n)
	t.Logf("%v", total)
	if total["simulations"] < 10_000 || t.Failed() {
		return // that many do not meet everything
	}
	if n := total["refused"]; n > 0 {
		t.Errorf("%d policies were refused after they were accepted", n)
	}
	missed := []string{unknownKept}
	for _, end := range reprise.AttemptEnds() {
		if end != reprise.EndNotApplied && end != reprise.EndUndecided { // of transactions
			missed = append(missed, "end "+end.String())
		}
	}
	for _, rule := range mayRunAgain {
		missed = append(missed, rule.sentence)
	}
	for code := range mayAnswer {
		missed = append(missed, string(code))
	}
	for _, what := range slices.DeleteFunc(missed, func(what string) bool { return total[what] > 0 }) {
		t.Errorf("no simulation came to this, so they show nothing about it: %s", what)
	}
}

// TestASeedFixesItsRun runs simulations twice, and demands that everything happens again
// at the same times. What no seed fixes is which of the goroutines that one instant wakes
// continues first.
//
//nolint:paralleltest // the simulations need the processor for themselves
func TestASeedFixesItsRun(t *testing.T) {
	if setting.Race {
		t.Skip("the race detector shuffles goroutines on purpose")
	}
	const repeated, otherwise = 300, 60
	others := 0
	for seed := range uint64(repeated) {
		first, second := newDraw(seed).run(t, nil).history, newDraw(seed).run(t, nil).history
		if slices.Sort(first); !slices.Equal(first, slices.Sorted(slices.Values(second))) {
			others++
		}
	}
	t.Logf("%d of %d runs went otherwise the second time", others, repeated)
	if others > otherwise {
		t.Errorf("at most %d may", otherwise)
	}
}

// TestEveryFieldIsDrawn fails for a new field that no draw sets. Those that the tests of
// core/protocol are enough for are not drawn: they change the text of a response, or
// where its body is.
func TestEveryFieldIsDrawn(t *testing.T) {
	t.Parallel()
	drawn := []string{
		"Describe", "Fingerprint.Omit", "Problems.Base",
		"Offload.Blobs", "Offload.ReadOnly", "Offload.MaxBody", "Offload.MaxSpool", "Offload.Dir", "Offload.Timeout",
		"Seal.OtherSecrets", // basePolicy
		"Engine.Log",        // likewise: nothing
		"Transactional",     // which needs a database: lab/faults, lab/lincheck
	}
	for _, f := range slices.Concat(policyFields, engineFields, storeFields) {
		drawn = append(drawn, f.name)
	}
	for _, name := range slices.Concat(fieldsOf("", reflect.TypeFor[protocol.Config]()), fieldsOf("", reflect.TypeFor[memstore.Bounds]())) {
		if !slices.Contains(drawn, name) {
			t.Errorf("%s is not drawn: add it to the table of its configuration", name)
		}
	}
}

// fieldsOf returns the names of the fields of a configuration, those of its groups with
// the group's.
func fieldsOf(prefix string, config reflect.Type) (list []string) {
	for _, f := range reflect.VisibleFields(config) {
		name := prefix + f.Name
		if f.Type.Kind() == reflect.Struct && f.Type.NumField() > 0 && f.Type.Field(0).IsExported() {
			list = append(list, fieldsOf(name+".", f.Type)...)
			continue
		}
		list = append(list, strings.TrimPrefix(name, "."))
	}
	return list
}
