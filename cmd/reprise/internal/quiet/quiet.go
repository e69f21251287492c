// Package quiet keeps the terminal libraries from asking questions of the terminal before
// main starts.
//
// The package bubbletea asks the terminal for its background colour while it is
// initialized, also in a program that never opens a screen. The terminal answers as if
// somebody typed, and one that does not answer delays every command by five seconds.
// Nobody is asked where TERM is "dumb", so this package sets it for the time of the
// initialization. Packages are initialized in the order of their import paths once their
// own imports are, and those libraries import golang.org/x/sys, which comes after this
// package.
package quiet

import "os"

var (
	term    string
	hadTerm bool
)

func init() { //nolint:gochecknoinits // only an init comes before another package's init
	term, hadTerm = os.LookupEnv("TERM")
	_ = os.Setenv("TERM", "dumb")
}

// End gives TERM its value back. The main function calls it first.
func End() {
	if hadTerm {
		_ = os.Setenv("TERM", term)
		return
	}
	_ = os.Unsetenv("TERM")
}
