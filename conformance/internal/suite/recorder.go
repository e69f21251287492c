package suite

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
)

// Recorder is a [testing.TB] that keeps what a case reports instead of reporting it. It shows whether a case would fail
// without failing the test that runs it. What it does not override goes to the test.
type Recorder struct {
	testing.TB

	mu      sync.Mutex
	failed  bool
	skipped bool
	log     []string
}

// Record runs body in a goroutine of its own, because FailNow and SkipNow end the goroutine that calls them, and
// returns when it has ended. A panic is a failure.
func Record(tb testing.TB, body func(testing.TB)) *Recorder {
	tb.Helper()
	r := &Recorder{TB: tb}
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

// Text returns what was logged.
func (r *Recorder) Text() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(r.log, "\n")
}

func (r *Recorder) note(failed, skipped bool, line string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed = r.failed || failed
	r.skipped = r.skipped || skipped
	if line != "" {
		r.log = append(r.log, strings.TrimSuffix(line, "\n"))
	}
}

func (r *Recorder) Failed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failed
}

func (r *Recorder) Skipped() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.skipped
}

func (r *Recorder) Log(args ...any) { r.note(false, false, fmt.Sprintln(args...)) }
func (r *Recorder) Logf(format string, args ...any) {
	r.note(false, false, fmt.Sprintf(format, args...))
}

func (r *Recorder) Fail()             { r.note(true, false, "") }
func (r *Recorder) Error(args ...any) { r.note(true, false, fmt.Sprintln(args...)) }
func (r *Recorder) Errorf(format string, args ...any) {
	r.note(true, false, fmt.Sprintf(format, args...))
}

func (r *Recorder) FailNow() {
	r.Fail()
	runtime.Goexit()
}

func (r *Recorder) Fatal(args ...any) {
	r.Error(args...)
	runtime.Goexit()
}

func (r *Recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	runtime.Goexit()
}

func (r *Recorder) SkipNow() {
	r.note(false, true, "")
	runtime.Goexit()
}

func (r *Recorder) Skip(args ...any) {
	r.Log(args...)
	r.SkipNow()
}

func (r *Recorder) Skipf(format string, args ...any) {
	r.Logf(format, args...)
	r.SkipNow()
}
