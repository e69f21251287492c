package servers

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"strings"
)

// RedisServer is one server of the Redis protocol.
type RedisServer struct {
	addr    string
	url     string
	user    *url.Userinfo // nil: no password
	version Version
	control
}

// Addr returns the server's host:port.
func (s *RedisServer) Addr() string { return s.addr }

// URL returns the server's redis:// URL.
func (s *RedisServer) URL() string { return s.url }

// Version returns the version of the server.
func (s *RedisServer) Version() Version { return s.version }

// Do sends a command over a new connection and returns the reply: a string, an int64,
// nil, or a []any of these. It takes at most five seconds. It is for the set-up and the
// observations of a test, not for the code under test.
func (s *RedisServer) Do(ctx context.Context, args ...string) (any, error) {
	reply, err := redisCall(ctx, s.addr, s.user, args...)
	if err != nil {
		return nil, fmt.Errorf("%s to %s: %w", args[0], s.addr, err)
	}
	return reply, nil
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

// start starts a single server.
func (f *Flavor) start(c cleaner, settings []string) (*RedisServer, error) {
	path, version, err := f.find(context.Background())
	if err != nil {
		return nil, err
	}
	return startNode(c, path, version, settings)
}

// startNode starts a server on a free port, and tries another when the port was taken.
func startNode(c cleaner, path string, version Version, settings []string) (*RedisServer, error) {
	dir, err := scratch(c, nil)
	if err != nil {
		return nil, err
	}
	return onFreePort(func(port int) (*RedisServer, error) {
		u := url.URL{Scheme: "redis", Host: address(port), User: password(settings)}
		s := &RedisServer{
			addr: u.Host, url: u.String(), user: u.User, version: version,
			control: control{process: &process{path: path, args: redisArgs(port, settings), dir: dir}},
		}
		err := s.serve(c, s.answers)
		return s, err
	})
}

// redisArgs returns the command line of a server: quick, loopback only, and not
// persistent unless the settings say so.
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

// password returns the password that the setting requirepass, if there is one, demands.
func password(settings []string) *url.Userinfo {
	for _, s := range settings {
		if p, ok := strings.CutPrefix(s, "requirepass="); ok {
			return url.UserPassword("", p)
		}
	}
	return nil
}

// answers returns nil when the server's process answers, and not another on its port.
func (s *RedisServer) answers(ctx context.Context) error {
	info, err := s.info(ctx, "server")
	if err != nil {
		return err
	}
	if pid := strconv.Itoa(s.process.pid()); info["process_id"] != pid {
		return fmt.Errorf("process %s answers on %s instead of %s", info["process_id"], s.addr, pid)
	}
	_, err = s.Do(ctx, "PING") // fails while it loads its data
	return err
}
