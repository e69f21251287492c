package servers

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Clock is the clock of a server that a test can step. It runs at the pace of this
// machine's.
type Clock struct{ file string }

// nameFaketime is libfaketime in REPRISE_TEST_REQUIRE.
const nameFaketime = "faketime"

// Step sets the server's clock so far ahead of this machine's, or behind it. The server
// reads it from its next look at its clock.
func (c *Clock) Step(tb testing.TB, offset time.Duration) {
	tb.Helper()
	must(tb, c.step(offset))
}

func (c *Clock) step(offset time.Duration) error {
	text := strconv.FormatFloat(offset.Seconds(), 'f', 3, 64)
	if offset >= 0 {
		text = "+" + text
	}
	next := c.file + ".next"
	if err := os.WriteFile(next, []byte(text+"\n"), 0o644); err != nil {
		return err
	}
	if err := os.Chmod(next, 0o644); err != nil {
		return err
	}
	return os.Rename(next, c.file) // as a whole
}

// newClock returns a clock, and a program that runs path by it.
func newClock(c cleaner, path string) (*Clock, string, error) {
	libraries, _ := filepath.Glob("/usr/lib/*/faketime/libfaketimeMT.so.1")
	others, _ := filepath.Glob("/usr/lib/faketime/libfaketimeMT.so.1")
	libraries = append(libraries, others...)
	if len(libraries) == 0 {
		return nil, "", &missingError{nameFaketime, "no libfaketimeMT.so.1 below /usr/lib: install the package faketime"}
	}
	dir, err := scratch(c, nil)
	if err != nil {
		return nil, "", err
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		return nil, "", err
	}
	clock := &Clock{filepath.Join(dir, "clock")}
	if err := clock.step(0); err != nil {
		return nil, "", err
	}
	script := strings.Join([]string{
		"#!/bin/sh",
		"export FAKETIME_TIMESTAMP_FILE=" + clock.file + " FAKETIME_NO_CACHE=1 FAKETIME_DISABLE_SHM=1",
		"export DONT_FAKE_MONOTONIC=1 FAKETIME_DONT_FAKE_MONOTONIC=1", // the monotonic clock does not jump
		// The C library's own allocator: Redis' asks for the time before libfaketime is ready.
		fmt.Sprintf(`LD_PRELOAD="%s libc.so.6" exec %s "$@"`, libraries[0], path),
	}, "\n")
	program := filepath.Join(dir, filepath.Base(path))
	if err := os.WriteFile(program, []byte(script+"\n"), 0o755); err != nil {
		return nil, "", err
	}
	return clock, program, os.Chmod(program, 0o755)
}

// StartWithClock is Start for a server whose clock the test can step. It needs
// libfaketime.
func (f *Flavor) StartWithClock(tb testing.TB, settings ...string) (*RedisServer, *Clock) {
	tb.Helper()
	path, version, err := f.find(tb.Context())
	must(tb, err)
	clock, program, err := newClock(tb, path)
	must(tb, err)
	s, err := startNode(tb, program, version, settings)
	must(tb, err)
	return s, clock
}

// StartPostgresWithClock is StartPostgres for a server whose clock the test can step. It
// needs libfaketime.
func StartPostgresWithClock(tb testing.TB, settings ...string) (*PostgresServer, *Clock) {
	tb.Helper()
	p, err := findPostgres(tb.Context())
	must(tb, err)
	clock, program, err := newClock(tb, p.path("postgres"))
	must(tb, err)
	s, err := startPostgres(tb, program, settings)
	must(tb, err)
	return s, clock
}
