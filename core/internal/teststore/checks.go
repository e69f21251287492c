package teststore

import (
	"errors"
	"testing"
	"testing/synctest"
)

// InTime runs body as a parallel test in a new bubble, where time passes only when all
// goroutines wait. The bubble fails when a goroutine is left at its end.
func InTime(t *testing.T, body func(t *testing.T)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, body)
}

// InTimeNamed is InTime for one row of a table.
func InTimeNamed(t *testing.T, name string, body func(t *testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { InTime(t, body) })
}

// WantError fails the test unless the error of a call is the wanted one.
func WantError(t *testing.T, what string, got, want error) {
	t.Helper()
	if !errors.Is(got, want) {
		t.Fatalf("%s: error %v, want %v", what, got, want)
	}
}
