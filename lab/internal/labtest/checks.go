package labtest

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"testing"
	"time"
)

// Must ends the test if err is an error.
func Must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// Want ends the test unless err is of the class want; nil wants success.
func Want(tb testing.TB, what string, err, want error) {
	tb.Helper()
	if !errors.Is(err, want) {
		tb.Fatalf("%s: %v, want %v", what, err, want)
	}
}

// IsOneOf reports whether err is of one of some classes; nil is success.
func IsOneOf(err error, classes []error) bool {
	return slices.ContainsFunc(classes, func(class error) bool { return errors.Is(err, class) })
}

// Exec executes a statement on a pool, a connection or a transaction.
func Exec(tb testing.TB, on interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}, statement string, args ...any,
) {
	tb.Helper()
	if _, err := on.ExecContext(tb.Context(), statement, args...); err != nil {
		tb.Fatalf("%s: %v", statement, err)
	}
}

// Eventually polls a condition for up to a minute.
func Eventually(tb testing.TB, what string, condition func() bool) {
	tb.Helper()
	for deadline := time.Now().Add(time.Minute); !condition(); {
		if time.Now().After(deadline) {
			tb.Fatalf("not within a minute: %s", what)
		}
		time.Sleep(5 * time.Millisecond) //nolint:forbidigo // polls
	}
}
