package labtest

import "testing"

// Breadth skips a test that repeats others for breadth if the tests run with -short, as
// "make test" runs them. The text names the repeated tests, in the plural: the last line
// of "make test" counts the skips by it.
func Breadth(tb testing.TB, text string) {
	tb.Helper()
	if testing.Short() {
		tb.Skip("left to make nightly: " + text)
	}
}

// Times is how often a test repeats what it shows: seldom with -short, and often in
// "make nightly".
func Times(often, seldom int) int {
	if testing.Short() {
		return seldom
	}
	return often
}
