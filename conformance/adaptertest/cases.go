package adaptertest

import (
	"cmp"
	"iter"
	"maps"
	"slices"
)

var cases = slices.Concat(
	keyCases, methodCases, replayCases, headerCases, concurrencyCases, fingerprintCases, formCases, bodyCases,
	outcomeCases, unknownCases, streamingCases, offloadCases, scopeCases, nestedCases, trapCases,
)

// inOrder yields the parts of a case by their names: a case that ends at its first
// failure then says the same in every run, and a waiver can quote it.
func inOrder[K cmp.Ordered, V any](parts map[K]V) iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		for _, name := range slices.Sorted(maps.Keys(parts)) {
			if !yield(name, parts[name]) {
				return
			}
		}
	}
}
