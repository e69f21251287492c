package main

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/reprise-go/reprise/lab/servers"
)

// programs builds the servers under test, each when it is first asked for.
type programs struct {
	root  string // the folder of go.work
	dir   string // for what is built
	built map[string]builtProgram
}

type builtProgram struct {
	command []string
	err     error
}

// The names of programs.
const (
	testserver = "testserver" // Reprise
	floors     = "floors"     // what it is compared with, in the lab's own module
	fiberv2    = "fiberv2"    // Fiber v2 with its own middleware and with Reprise
	fiberv3    = "fiberv3"    // Fiber v3 with its own
	node       = "node"       // Express with two packages of npm
)

func newPrograms(ctx context.Context, dir string) (*programs, error) {
	list := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/reprise-go/reprise/lab")
	list.Stderr = os.Stderr
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("find the module lab: %w", err)
	}
	return &programs{filepath.Dir(strings.TrimSpace(string(out))), dir, map[string]builtProgram{}}, nil
}

// command returns how to start a program. An error says why it cannot be had.
func (p *programs) command(ctx context.Context, name string) ([]string, error) {
	b, ok := p.built[name]
	if !ok {
		b.command, b.err = p.build(ctx, name)
		p.built[name] = b
	}
	return b.command, b.err
}

func (p *programs) build(ctx context.Context, name string) ([]string, error) {
	path := filepath.Join(p.dir, name)
	switch name {
	case testserver:
		return []string{path}, p.goBuild(ctx, ".", path, "./lab/testserver")
	case floors:
		return []string{path}, p.goBuild(ctx, ".", path, "./lab/bench/floors")
	case fiberv2:
		return []string{path}, p.goBuild(ctx, "tools/peers", path, "./fiberv2", "GOWORK=off")
	case fiberv3:
		return []string{path}, p.goBuild(ctx, "tools/fiberv3", path, ".", "GOWORK=off")
	case node:
		return p.buildNode(ctx)
	default:
		return nil, fmt.Errorf("no program %q", name)
	}
}

// buildNode installs the packages beside a copy of the program, so that the tree stays as
// it is.
func (p *programs) buildNode(ctx context.Context) ([]string, error) {
	for _, needed := range []string{"node", "npm"} {
		if _, err := exec.LookPath(needed); err != nil {
			return nil, fmt.Errorf("%s is not installed", needed)
		}
	}
	folder := filepath.Join(p.dir, node)
	if err := os.CopyFS(folder, os.DirFS(filepath.Join(p.root, "tools", "peers", "node"))); err != nil {
		return nil, err
	}
	npm := exec.CommandContext(ctx, "npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts")
	npm.Dir = folder
	if out, err := npm.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("npm ci: %w: %s", err, lastLine(out))
	}
	return []string{"node", filepath.Join(folder, "server.js")}, nil
}

// goBuild builds the package of a folder.
func (p *programs) goBuild(ctx context.Context, folder, path, pkg string, env ...string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-o", path, pkg)
	cmd.Dir, cmd.Env = filepath.Join(p.root, folder), append(os.Environ(), env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w: %s", err, lastLine(out))
	}
	return nil
}

func lastLine(out []byte) string {
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	return lines[len(lines)-1]
}

// server is a process that serves.
type server struct {
	addr string
	cmd  *exec.Cmd
}

// startServer starts a program that prints where it listens. It ends with the host.
func startServer(h *host, command []string) (*server, error) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(h.ctx))
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	log := new(firstBytes) // of why it did not start; requests that fail the load reports
	cmd.Stderr = log
	cmd.Env = append(os.Environ(), "NODE_ENV=production") // without it Express is slower
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 5 * time.Second
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		cancel()
		return nil, err
	}
	h.Cleanup(func() {
		cancel()
		_ = cmd.Wait() // it was interrupted
	})
	line, _ := bufio.NewReader(out).ReadString('\n')
	addr, ok := strings.CutPrefix(strings.TrimSpace(line), "listening on ")
	if !ok {
		cancel()
		_ = cmd.Wait() // what it said is in the log then
		return nil, fmt.Errorf("%s ended: %s", filepath.Base(command[0]), cmp.Or(lastLine(log.kept), "it did not say where it listens"))
	}
	return &server{addr, cmd}, nil
}

// firstBytes keeps the first bytes that it gets, and drops the rest.
type firstBytes struct{ kept []byte }

// Write implements [io.Writer].
func (b *firstBytes) Write(p []byte) (int, error) {
	const most = 4 << 10
	b.kept = append(b.kept, p[:min(len(p), most-len(b.kept))]...)
	return len(p), nil
}

// usage returns the CPU time of the process.
func (s *server) usage(h *host) servers.Usage {
	u, err := servers.UsageOf(s.cmd.Process.Pid)
	if err != nil {
		h.Fatal(err)
	}
	return u
}
