package suite

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
)

// Recording is the reports of a case.
type Recording interface {
	testing.TB

	// Text returns the log.
	Text() string
}

// recorder records the reports of a case. It shows whether a case would fail without
// failing the test that runs it. Methods that it does not override go to the test.
type recorder struct {
	testing.TB

	mu      sync.Mutex
	failed  bool
	skipped bool
	log     []string
}

// Record runs body in its own goroutine, because FailNow and SkipNow end the goroutine
// that calls them, and returns when it ended. A panic is a failure.
func Record(tb testing.TB, body func(testing.TB)) Recording {
	tb.Helper()
	r := &recorder{TB: tb}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			if p := recover(); p != nil {
				r.Errorf("panic: %v\n%s", p, debug.Stack())
			}
		}()
		body(r)
	}()
	<-done
	return r
}

func (r *recorder) Text() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(r.log, "\n")
}

func (r *recorder) note(failed, skipped bool, line string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed = r.failed || failed
	r.skipped = r.skipped || skipped
	if line != "" {
		r.log = append(r.log, strings.TrimSuffix(line, "\n"))
	}
}

func (r *recorder) Failed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failed
}

func (r *recorder) Skipped() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.skipped
}

func (r *recorder) Log(args ...any) { r.note(false, false, fmt.Sprintln(args...)) }
func (r *recorder) Logf(format string, args ...any) {
	r.note(false, false, fmt.Sprintf(format, args...))
}

func (r *recorder) Fail()             { r.note(true, false, "") }
func (r *recorder) Error(args ...any) { r.note(true, false, fmt.Sprintln(args...)) }
func (r *recorder) Errorf(format string, args ...any) {
	r.note(true, false, fmt.Sprintf(format, args...))
}

func (r *recorder) FailNow() {
	r.Fail()
	runtime.Goexit()
}

func (r *recorder) Fatal(args ...any) {
	r.Error(args...)
	runtime.Goexit()
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	runtime.Goexit()
}

func (r *recorder) SkipNow() {
	r.note(false, true, "")
	runtime.Goexit()
}

func (r *recorder) Skip(args ...any) {
	r.Log(args...)
	r.SkipNow()
}

func (r *recorder) Skipf(format string, args ...any) {
	r.Logf(format, args...)
	r.SkipNow()
}
