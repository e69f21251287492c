package servers

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"testing"
)

// Flavor is a program that serves the Redis protocol, version 7.0 or newer.
type Flavor struct {
	name    string
	program string
	urlEnv  string
	shared  shared[*RedisServer]
}

// The flavors.
var (
	Redis  = &Flavor{name: nameRedis, program: "redis-server", urlEnv: "REPRISE_TEST_REDIS_URL"}
	Valkey = &Flavor{name: nameValkey, program: "valkey-server", urlEnv: "REPRISE_TEST_VALKEY_URL"}
)

// String returns the name of the flavor in lower case.
func (f *Flavor) String() string { return f.name }

// Shared returns the server that all tests of this process share: the one that the
// environment names, or else one that was started for the process. Each test uses its own
// key prefix and changes no settings.
func (f *Flavor) Shared(tb testing.TB) *RedisServer {
	tb.Helper()
	s, err := f.shared.get(func(c cleaner) (*RedisServer, error) {
		if raw := os.Getenv(f.urlEnv); raw != "" {
			return external(f, raw)
		}
		return f.start(c, nil)
	})
	must(tb, err)
	return s
}

// Start starts a server for the test, with settings such as "maxmemory=8mb" or "save=60
// 1". Unless they say otherwise it is not persistent.
func (f *Flavor) Start(tb testing.TB, settings ...string) *RedisServer {
	tb.Helper()
	s, err := f.start(tb, settings)
	must(tb, err)
	return s
}

// Version is the version of a server program.
type Version struct{ Major, Minor int }

// AtLeast reports whether v is major.minor or newer.
func (v Version) AtLeast(major, minor int) bool {
	return v.Major > major || v.Major == major && v.Minor >= minor
}

// String returns the version as in 7.2.
func (v Version) String() string { return fmt.Sprintf("%d.%d", v.Major, v.Minor) }

var versionPattern = regexp.MustCompile(`v=(\d+)\.(\d+)`)

// parseVersion parses a server's output of --version.
func parseVersion(text string) (Version, error) {
	m := versionPattern.FindStringSubmatch(text)
	if m == nil {
		return Version{}, fmt.Errorf("no version in %q", text)
	}
	major, _ := strconv.Atoi(m[1])
	minor, _ := strconv.Atoi(m[2])
	return Version{major, minor}, nil
}

func (v Version) check(f *Flavor) error {
	if v.AtLeast(7, 0) {
		return nil
	}
	return &missingError{f.name, fmt.Sprintf("%s is version %v, need 7.0 or newer", f.program, v)}
}

// find looks for the program of the flavor, new enough.
func (f *Flavor) find(ctx context.Context) (path string, v Version, err error) {
	path, err = exec.LookPath(f.program)
	if err != nil {
		return "", v, &missingError{f.name, fmt.Sprintf(
			"no %s on PATH: install the package %s, or name a server in %s for the tests that share one", f.program, f.program, f.urlEnv)}
	}
	out, err := run(ctx, nil, path, "--version")
	if err != nil {
		return "", v, err
	}
	if v, err = parseVersion(out); err != nil {
		return "", v, err
	}
	return path, v, v.check(f)
}
