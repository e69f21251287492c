package suites

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

	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/servers"
)

// programs builds the servers under test, each when it is first asked for.
type programs struct {
	root  string // the folder of go.work
	dir   string // for built programs
	built map[string]builtProgram
}

// Build builds a program at a path, which may become a folder, and returns how to start
// it. root is the folder of go.work. An error says why the program is unavailable.
type Build func(ctx context.Context, root, path string) (command []string, err error)

type builtProgram struct {
	command []string
	err     error
}

// testserverOf returns the program that serves the adapter for a framework.
func testserverOf(framework string) string { return "lab/" + framework + "/testserver" }

// floorsOf returns the program that the adapter for a framework is compared with.
func floorsOf(framework string) string { return "lab/" + framework + "/floors" }

func newPrograms(ctx context.Context, dir string) (*programs, error) {
	list := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/reprise-go/reprise/lab")
	list.Stderr = os.Stderr
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("find the module lab: %w", err)
	}
	return &programs{filepath.Dir(strings.TrimSpace(string(out))), dir, map[string]builtProgram{}}, nil
}

// command returns how to start the program of a variant. An error says why it is
// unavailable.
func (p *programs) command(ctx context.Context, v Variant) ([]string, error) {
	b, ok := p.built[v.Program]
	if !ok {
		b.command, b.err = p.build(ctx, v)
		p.built[v.Program] = b
	}
	return b.command, b.err
}

func (p *programs) build(ctx context.Context, v Variant) ([]string, error) {
	path := filepath.Join(p.dir, strings.ReplaceAll(v.Program, "/", "-"))
	if v.Build != nil {
		return v.Build(ctx, p.root, path)
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-o", path, ".")
	cmd.Dir = filepath.Join(p.root, filepath.FromSlash(v.Program))
	if strings.HasPrefix(v.Program, "lab/fiber3/") || strings.HasPrefix(v.Program, "lab/etcd/") { // which are outside of the workspace
		cmd.Env = append(os.Environ(), "GOWORK=off")
	}
	return []string{path}, Run(cmd)
}

// BuildPeer returns how to build a program of tools/peers, which is outside of the
// workspace.
func BuildPeer(program string) Build {
	return func(ctx context.Context, root, path string) ([]string, error) {
		build := exec.CommandContext(ctx, "go", "build", "-o", path, ".")
		build.Dir, build.Env = filepath.Join(root, "tools", "peers", program), append(os.Environ(), "GOWORK=off")
		return []string{path}, Run(build)
	}
}

// Run runs a command that builds. Its error ends with the last line that it wrote.
func Run(cmd *exec.Cmd) error {
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(cmd.Args, " "), err, lastLine(out))
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
	addr, ok := "", false
	for lines := bufio.NewScanner(out); !ok && lines.Scan(); {
		if addr, ok = strings.CutPrefix(lines.Text(), "listening on "); !ok {
			addr, ok = strings.CutPrefix(lines.Text(), "at http://") // of the program reprise
		}
	}
	if !ok {
		cancel()
		_ = cmd.Wait() // its output is in the log then
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
	labtest.Must(h, err)
	return u
}
