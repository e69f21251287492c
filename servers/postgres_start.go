package servers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// pgPrograms are the programs of one installation of PostgreSQL, and the account that
// runs them.
type pgPrograms struct {
	bin     string // their directory
	version int    // major
	as      *account
}

func (p *pgPrograms) path(name string) string { return filepath.Join(p.bin, name) }

// findPostgres looks for an installation that is new enough: where the environment says,
// or else first on PATH, then where distributions put them, newest first.
func findPostgres(ctx context.Context) (*pgPrograms, error) {
	as, err := unprivileged()
	if err != nil {
		return nil, err
	}
	old := ""
	for _, dir := range pgFolders() {
		p := &pgPrograms{bin: dir, as: as}
		if !p.complete() {
			continue
		}
		out, err := p.readable(ctx)
		if err != nil {
			return nil, err
		}
		if p.version, err = pgMajor(out); err != nil {
			return nil, err
		}
		if p.version < 15 {
			old = strings.TrimSpace(out) + " is too old; "
			continue
		}
		return p, nil
	}
	if dir := os.Getenv(postgresBinEnv); dir != "" {
		return nil, fmt.Errorf("%s: %sno postgres and initdb of version 15 or newer in %s", postgresBinEnv, old, dir)
	}
	return nil, &missingError{namePostgres, old + "no PostgreSQL 15 or newer on PATH or in /usr/lib/postgresql: install the package postgresql, " +
		"or name a server in " + postgresURLEnv + " for the tests that share one"}
}

// pgFolders returns the directories that may have the programs.
func pgFolders() []string {
	if dir := os.Getenv(postgresBinEnv); dir != "" {
		return []string{dir}
	}
	dirs := filepath.SplitList(os.Getenv("PATH"))
	for _, pattern := range []string{"/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/usr/local/pgsql/bin", "/opt/homebrew/opt/postgresql@*/bin"} {
		found, _ := filepath.Glob(pattern)
		slices.Reverse(found)
		dirs = append(dirs, found...)
	}
	return dirs
}

// pgCopy is the directory of a copy that the account may read.
var pgCopy shared[string]

// readable returns the output of postgres --version. It copies an installation that the
// account may not read, such as one in root's own checkout, and uses the copy.
func (p *pgPrograms) readable(ctx context.Context) (string, error) {
	out, err := run(ctx, p.as, p.path("postgres"), "--version")
	if !errors.Is(err, fs.ErrPermission) {
		return out, err
	}
	p.bin, err = pgCopy.get(func(c cleaner) (string, error) {
		dir, err := scratch(c, p.as)
		if err != nil {
			return "", err
		}
		_, err = run(ctx, nil, "cp", "-R", filepath.Dir(p.bin), filepath.Join(dir, "postgres"))
		return filepath.Join(dir, "postgres", filepath.Base(p.bin)), err
	})
	if err != nil {
		return "", err
	}
	return run(ctx, p.as, p.path("postgres"), "--version")
}

// complete reports whether the directory holds all programs that are used here. Some have
// the clients only.
func (p *pgPrograms) complete() bool {
	for _, name := range []string{"postgres", "initdb"} {
		if _, err := exec.LookPath(p.path(name)); err != nil {
			return false
		}
	}
	return true
}

// pgMajor reads 15 out of "postgres (PostgreSQL) 15.4 (Debian 15.4-1)".
func pgMajor(text string) (int, error) {
	_, rest, _ := strings.Cut(text, "(PostgreSQL) ")
	digits := strings.IndexFunc(rest, func(r rune) bool { return r < '0' || r > '9' })
	major, err := strconv.Atoi(rest[:max(digits, 0)])
	if err != nil {
		return 0, fmt.Errorf("no version in %q", text)
	}
	return major, nil
}

// pgData is the name of a data directory, in a directory of scratch.
const pgData = "data"

// pgTemplate is an initialised data directory that the servers of this process are copies
// of: initdb takes longer than a copy.
var pgTemplate shared[string]

// initialise returns the template.
func (p *pgPrograms) initialise(ctx context.Context) (string, error) {
	return pgTemplate.get(func(c cleaner) (string, error) {
		dir, err := scratch(c, p.as)
		if err != nil {
			return "", err
		}
		data := filepath.Join(dir, pgData)
		_, err = run(ctx, p.as, p.path("initdb"), "--pgdata", data, "--username", pgUser, "--auth", "trust",
			"--encoding", "UTF8", "--locale", "C", "--wal-segsize", "1", "--no-sync", "--no-instructions")
		return data, err
	})
}

// startPostgres starts a primary, by a program that runs postgres if one is named.
func startPostgres(c cleaner, program string, settings []string) (*PostgresServer, error) {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	p, err := findPostgres(ctx)
	if err != nil {
		return nil, err
	}
	template, err := p.initialise(ctx)
	if err != nil {
		return nil, err
	}
	dir, err := scratch(c, p.as)
	if err != nil {
		return nil, err
	}
	if _, err := run(ctx, p.as, "cp", "-Rp", template, filepath.Join(dir, pgData)); err != nil {
		return nil, err
	}
	return p.serve(c, dir, program, settings)
}

// serve starts a server on the data directory in dir.
func (p *pgPrograms) serve(c cleaner, dir, program string, settings []string) (*PostgresServer, error) {
	data := filepath.Join(dir, pgData)
	return onFreePort(func(port int) (*PostgresServer, error) {
		s := &PostgresServer{
			addr: address(port), url: pgURL(port), programs: p, data: data,
			control: control{process: &process{path: cmp.Or(program, p.path("postgres")), args: pgArgs(data, port, settings), dir: dir, as: p.as, shutdown: sigImmediate}},
		}
		c.Cleanup(func() { removeSegment(data) })
		err := s.serve(c, s.answers)
		return s, err
	})
}

// pgURL returns the URL of the superuser on a port.
func pgURL(port int) string {
	return "postgres://" + pgUser + "@" + address(port) + "/" + pgUser + "?sslmode=disable"
}

// removeSegment removes the System V shared memory segment of a server that was killed
// and did not get to remove it, which the seventh line of postmaster.pid names: "key id".
func removeSegment(data string) {
	b, err := os.ReadFile(filepath.Join(data, "postmaster.pid"))
	if err != nil {
		return // it ended in order
	}
	lines := strings.Split(string(b), "\n")
	if len(lines) < 7 {
		return
	}
	if f := strings.Fields(lines[6]); len(f) == 2 {
		_, _ = run(context.Background(), nil, "ipcrm", "-m", f[1]) // a few bytes stay where there is no ipcrm
	}
}

// pgArgs returns the command line of a server: loopback only, and not synced to the disk
// unless the settings say so. The memory that it shares between its processes is in its
// data directory, because a killed server does not remove it elsewhere.
func pgArgs(data string, port int, settings []string) []string {
	args := []string{"-D", data, "-p", strconv.Itoa(port)}
	defaults := []string{"listen_addresses=" + loopback, "unix_socket_directories=", "dynamic_shared_memory_type=mmap", "fsync=off"}
	for _, s := range slices.Concat(defaults, settings) {
		args = append(args, "-c", s)
	}
	return args
}
