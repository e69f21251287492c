package labtest

import (
	"hash/fnv"
	"testing"
)

// Draw returns a number that depends on the name of a test alone: with it, the cases of a
// suite divide the variants of a store among them, in each run alike.
func Draw(tb testing.TB) int {
	tb.Helper()
	h := fnv.New32a()
	_, _ = h.Write([]byte(tb.Name())) // never fails
	return int(h.Sum32() >> 1)
}
