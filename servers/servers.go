// Package servers gives tests real servers: Redis or Valkey (single, replicated, Cluster,
// Sentinel), PostgreSQL with standbys, PgBouncer, MariaDB, and a TCP proxy that loses,
// cuts, holds and delays bytes.
//
//	func TestMain(m *testing.M) { servers.Main{M: m}.Run() }
//
//	redis := servers.Redis.Shared(t)               // one for the test process; use your own key prefix
//	redis := servers.Redis.Start(t, "maxmemory=8mb") // one for this test, to kill, pause and restart
//	primary := servers.StartPostgres(t)
//	standby := primary.StartStandby(t)
//	proxy := servers.StartProxy(t, primary.Addr())
//
// # Where servers come from
//
// Shared servers are named by a URL in the environment (REPRISE_TEST_REDIS_URL,
// REPRISE_TEST_VALKEY_URL, REPRISE_TEST_POSTGRES_URL, REPRISE_TEST_MARIADB_URL), or else
// started from a program on this machine. A test that kills or reconfigures a server gets
// a private one, always from a program. No program is installed: where one is missing the
// test is skipped with a message that names the package. REPRISE_TEST_POSTGRES_BIN names
// the directory of the PostgreSQL programs to use, of another version for example.
//
// REPRISE_TEST_REQUIRE, a list such as "redis,postgres,pgbouncer" (also: valkey,
// mariadb), turns the skip into a failure, so that a build cannot pass without the tests.
// The frameworks that a build may leave out, the programs chromium and npm, the library
// faketime and the right to mount a tmpfs are named in the same list, and sqlite, for the
// driver that needs a C compiler; see [Required].
//
// # Remains
//
// Servers listen on free loopback ports and keep their files in the temporary directory.
// They stop, by process id, when their test ends; shared ones when [Main] ends. On Linux
// the kernel kills them when the test process dies in any other way, and the files that
// they leave then are removed by the next test process that starts a server.
//
// The package needs a Unix system.
package servers

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// The names that REPRISE_TEST_REQUIRE knows.
const (
	nameRedis     = "redis"
	nameValkey    = "valkey"
	namePostgres  = "postgres"
	namePgBouncer = "pgbouncer"
	nameMariaDB   = "mariadb"
)

// others are the other names that REPRISE_TEST_REQUIRE knows: the frameworks, etcd and
// the drivers of SQLite, which make demands, and programs that tests run.
var others = []string{"gin", "echo", "echo5", "fiber", "fiber3", "sqlite", "etcd", "chromium", "npm", nameFaketime, nameTmpfs}

const requireEnv = "REPRISE_TEST_REQUIRE"

// startTimeout bounds how long a server may take for a step. It is generous: a machine
// that runs many tests at once is slow.
const startTimeout = 3 * time.Minute

// missingError says that a server cannot be had on this machine, which skips the test.
type missingError struct {
	name   string // as in REPRISE_TEST_REQUIRE
	detail string
}

func (e *missingError) Error() string { return e.name + ": " + e.detail }

// must ends the test if err is not nil: by a skip if a server is missing that is not
// required, else by a failure.
func must(tb testing.TB, err error) {
	tb.Helper()
	if err == nil {
		return
	}
	var missing *missingError
	if !errors.As(err, &missing) {
		tb.Fatalf("servers: %v", err)
	}
	names, bad := required()
	switch {
	case bad != nil:
		tb.Fatalf("servers: %v", bad)
	case slices.Contains(names, missing.name):
		tb.Fatalf("servers: %v (%s requires it)", err, requireEnv)
	default:
		tb.Skipf("servers: %v", err)
	}
}

// Required reports whether REPRISE_TEST_REQUIRE names a server or a framework, which a
// test may then not leave out. It ends the test if the list has a name that it does not
// know.
func Required(tb testing.TB, name string) bool {
	tb.Helper()
	names, err := required()
	if err == nil && !slices.Contains(known(), name) {
		err = fmt.Errorf("%s does not know %q; add it to the package servers", requireEnv, name)
	}
	if err != nil {
		tb.Fatalf("servers: %v", err)
	}
	return slices.Contains(names, name)
}

// known returns every name that REPRISE_TEST_REQUIRE may have.
func known() []string {
	return append([]string{nameRedis, nameValkey, namePostgres, namePgBouncer, nameMariaDB}, others...)
}

// required returns the names in REPRISE_TEST_REQUIRE. A name that is not known is an
// error: a misspelt one would let a build pass untested.
func required() ([]string, error) {
	known := known()
	var names []string
	for name := range strings.SplitSeq(os.Getenv(requireEnv), ",") {
		name = strings.TrimSpace(name)
		if name == "" {
			continue
		}
		if !slices.Contains(known, name) {
			return nil, fmt.Errorf("%s names %q; it knows %s", requireEnv, name, strings.Join(known, ", "))
		}
		names = append(names, name)
	}
	return names, nil
}

// poll calls ready until it returns nil, and gives up with its last error after
// startTimeout.
func poll(ready func() error) error {
	const shortest, longest = 2 * time.Millisecond, 50 * time.Millisecond
	deadline := time.Now().Add(startTimeout)
	for pause := shortest; ; pause = min(2*pause, longest) {
		err := ready()
		if err == nil {
			return nil
		}
		var fatal *fatalError
		if errors.As(err, &fatal) {
			return fatal.err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("not ready after %v: %w", startTimeout, err)
		}
		time.Sleep(pause)
	}
}

// fatalError ends a poll at once.
type fatalError struct{ err error }

func (e *fatalError) Error() string { return e.err.Error() }
