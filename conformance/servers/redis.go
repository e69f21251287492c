package servers

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
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

// Shared returns the server that all tests of this process share: the one that the environment names, or else one that was
// started for the process. Tests keep to a key prefix of their own and change no settings.
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

// Start starts a server for the test, with settings such as "maxmemory=8mb" or "save=60 1". Unless they say otherwise it is not
// persistent.
func (f *Flavor) Start(tb testing.TB, settings ...string) *RedisServer {
	tb.Helper()
	s, err := f.start(tb, settings)
	must(tb, err)
	return s
}

// RedisServer is one server of the Redis protocol.
type RedisServer struct {
	addr    string
	url     string
	user    *url.Userinfo // nil: no password
	version Version
	control
}

// Version is the version of a server program.
type Version struct{ Major, Minor int }

// AtLeast reports whether v is major.minor or newer.
func (v Version) AtLeast(major, minor int) bool {
	return v.Major > major || v.Major == major && v.Minor >= minor
}

// String returns the version as in 7.2.
func (v Version) String() string { return fmt.Sprintf("%d.%d", v.Major, v.Minor) }

// Addr returns the server's host:port.
func (s *RedisServer) Addr() string { return s.addr }

// URL returns the server's redis:// URL.
func (s *RedisServer) URL() string { return s.url }

// Version returns the version of the server.
func (s *RedisServer) Version() Version { return s.version }

// Do sends a command over a new connection and returns the reply: a string, an int64, nil, or a []any of these. It takes at
// most five seconds. It is for a test's set-up and its witness, not for what is tested.
func (s *RedisServer) Do(ctx context.Context, args ...string) (any, error) {
	reply, err := redisCall(ctx, s.addr, s.user, args...)
	if err != nil {
		return nil, fmt.Errorf("%s to %s: %w", args[0], s.addr, err)
	}
	return reply, nil
}

// Restart kills the server if it runs, starts it on the same port, and waits until it answers. What it still knows depends on
// its persistence.
func (s *RedisServer) Restart(tb testing.TB) {
	tb.Helper()
	must(tb, s.own().kill())
	must(tb, s.launch(context.Background()))
}

// external returns the server that the environment names.
func external(f *Flavor, raw string) (*RedisServer, error) {
	u, err := url.Parse(raw)
	if err != nil || u.Scheme != "redis" || u.Host == "" {
		return nil, fmt.Errorf("%s: want redis://[user:password@]host:port", f.urlEnv) // the URL may hold a password
	}
	s := &RedisServer{addr: u.Host, url: raw, user: u.User}
	if u.Port() == "" {
		s.addr += ":6379"
	}
	if s.version, err = s.reportedVersion(context.Background()); err != nil {
		return nil, fmt.Errorf("%s: %w", f.urlEnv, err)
	}
	return s, s.version.check(f)
}

func (s *RedisServer) reportedVersion(ctx context.Context) (Version, error) {
	info, err := s.info(ctx, "server")
	if err != nil {
		return Version{}, err
	}
	v := info["valkey_version"]
	if v == "" {
		v = info["redis_version"]
	}
	return parseVersion("v=" + v)
}

// info returns a section of INFO as fields.
func (s *RedisServer) info(ctx context.Context, section string) (map[string]string, error) {
	reply, err := s.Do(ctx, "INFO", section)
	if err != nil {
		return nil, err
	}
	text, _ := reply.(string)
	return fields(text), nil
}

// fields reads lines of the form name:value.
func fields(text string) map[string]string {
	m := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			m[name] = value
		}
	}
	return m
}

var versionPattern = regexp.MustCompile(`v=(\d+)\.(\d+)`)

// parseVersion reads the version out of what a server says with --version.
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

// start starts a single server.
func (f *Flavor) start(c cleaner, settings []string) (*RedisServer, error) {
	path, version, err := f.find(context.Background())
	if err != nil {
		return nil, err
	}
	return startNode(c, path, version, settings)
}

// startNode starts a server on a free port, and tries another when somebody was faster.
func startNode(c cleaner, path string, version Version, settings []string) (*RedisServer, error) {
	dir, err := scratch(c, nil)
	if err != nil {
		return nil, err
	}
	return onFreePort(func(port int) (*RedisServer, error) {
		u := url.URL{Scheme: "redis", Host: address(port), User: password(settings)}
		s := &RedisServer{
			addr: u.Host, url: u.String(), user: u.User, version: version,
			control: control{&process{path: path, args: redisArgs(port, settings), dir: dir, shutdown: sigKill}},
		}
		c.Cleanup(func() { _ = s.process.stop() })
		return s, s.launch(context.Background())
	})
}

// redisArgs returns the command line of a server: quick, loopback only, and not persistent unless the settings say so.
func redisArgs(port int, settings []string) []string {
	args := []string{
		"--port", strconv.Itoa(port), "--bind", loopback, "--save", "", "--appendonly", "no",
		"--repl-diskless-sync-delay", "0", "--enable-debug-command", "local",
	}
	for _, s := range settings {
		name, value, _ := strings.Cut(s, "=")
		args = append(append(args, "--"+name), strings.Split(value, " ")...)
	}
	return args
}

// password returns what the setting requirepass, if there is one, asks of clients.
func password(settings []string) *url.Userinfo {
	for _, s := range settings {
		if p, ok := strings.CutPrefix(s, "requirepass="); ok {
			return url.UserPassword("", p)
		}
	}
	return nil
}

// launch starts the process and waits until it answers: it, and not another server that took the port.
func (s *RedisServer) launch(ctx context.Context) error {
	if err := s.process.start(); err != nil {
		return err
	}
	return poll(startTimeout, func() error {
		if err := s.process.alive(); err != nil {
			return err
		}
		info, err := s.info(ctx, "server")
		if err != nil {
			return err
		}
		if pid := strconv.Itoa(s.process.pid()); info["process_id"] != pid {
			return fmt.Errorf("process %s answers on %s instead of %s", info["process_id"], s.addr, pid)
		}
		if _, err := s.Do(ctx, "PING"); err != nil {
			return err // still loading its data
		}
		return nil
	})
}
