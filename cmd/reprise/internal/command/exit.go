package command

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/reprise-go/reprise/core/store"
)

// The exit codes.
const (
	ExitFine        = 0   // done, or no findings
	ExitFindings    = 1   // findings, no record found, or a change was refused
	ExitUsage       = 2   // the command line is wrong
	ExitUnsafe      = 3   // a guarantee does not hold, or the store is unavailable
	ExitInterrupted = 130 // a signal ended the command
)

// failure is how a command ends when it is not fine.
type failure struct {
	code int
	err  error // nil: the command has said everything
}

func (f *failure) Error() string {
	if f.err == nil {
		return ""
	}
	return f.err.Error()
}

func (f *failure) Unwrap() error { return f.err }

// ended ends a command with a code without further output.
func ended(code int) error {
	if code == ExitFine {
		return nil
	}
	return &failure{code: code}
}

func usage(format string, args ...any) error {
	return &failure{code: ExitUsage, err: fmt.Errorf(format, args...)}
}

func findings(format string, args ...any) error {
	return &failure{code: ExitFindings, err: fmt.Errorf(format, args...)}
}

func unsafe(format string, args ...any) error {
	return &failure{code: ExitUnsafe, err: fmt.Errorf(format, args...)}
}

// codeOf returns the exit code for an error. An error that is not a failure comes from
// cobra, and is about the command line.
func codeOf(err error) int {
	var f *failure
	switch {
	case err == nil:
		return ExitFine
	case errors.As(err, &f):
		return f.code
	case errors.Is(err, context.Canceled):
		return ExitInterrupted
	default:
		return ExitUsage
	}
}

// storeFailed returns the failure for an error of the store: its cause, whether the
// record may have changed, and the next step.
func storeFailed(ctx context.Context, doing string, err error) error {
	if context.Cause(ctx) != nil && errors.Is(ctx.Err(), context.Canceled) {
		return &failure{code: ExitInterrupted, err: fmt.Errorf("interrupted while %s", doing)}
	}
	code, advice := ExitUnsafe, ""
	switch {
	case errors.Is(err, store.ErrMisconfigured):
		advice = "; run reprise doctor to see what to change"
	case errors.Is(err, store.ErrUnavailable), errors.Is(err, store.ErrUnknown):
		advice = "; is the server running, and the URL right? reprise doctor shows more"
	case errors.Is(err, store.ErrNotFound), errors.Is(err, store.ErrRecordChanged):
		code = ExitFindings
	case errors.Is(err, store.ErrInvalid):
		code = ExitUsage
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) {
		advice = "; if the server is only slow, raise --timeout"
	}
	return &failure{code: code, err: fmt.Errorf("%s: %w%s", doing, err, advice)}
}
