package servers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
)

// process is a program that runs until it is stopped. It can be started again with the
// same arguments.
type process struct {
	path     string
	args     []string
	dir      string    // its working directory; its output goes to a file in it
	as       *account  // nil: the user of this process
	env      []string  // besides that of command
	shutdown os.Signal // nil: it is killed

	mu     sync.Mutex
	cmd    *exec.Cmd     // nil before the first start
	exited chan struct{} // closed when cmd was waited for
	paused bool
}

// start runs the program. It does not wait until the program is of use.
func (p *process) start() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.running() {
		return fmt.Errorf("%s runs already", p.path)
	}
	log, err := os.OpenFile(p.logFile(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()

	cmd := command(context.Background(), p.as, p.path, p.args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.Env = p.dir, log, log, append(cmd.Env, p.env...)
	killWithParent(cmd)
	started, exited := make(chan error), make(chan struct{})
	go func() {
		// The kernel kills the program when the thread that started it ends, so this goroutine
		// keeps its thread until the program has ended.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(exited)
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // how it ended is in its log
		}
	}()
	if err := <-started; err != nil {
		return fmt.Errorf("start %s: %w", p.path, err)
	}
	p.cmd, p.exited, p.paused = cmd, exited, false
	return nil
}

// running reports whether the program was started and has not ended. The caller holds mu.
func (p *process) running() bool {
	if p.cmd == nil {
		return false
	}
	select {
	case <-p.exited:
		return false
	default:
		return true
	}
}

// alive returns nil while the program runs, and an error that ends a poll with its last
// words when it does not.
func (p *process) alive() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.running() {
		return nil
	}
	return &fatalError{fmt.Errorf("%s ended:\n%s", p.path, p.lastWords())}
}

// responsive reports whether the program runs and is not paused.
func (p *process) responsive() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.running() && !p.paused
}

// pid returns the process id, 0 if the program does not run.
func (p *process) pid() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.running() {
		return 0
	}
	return p.cmd.Process.Pid
}

// signalAll sends sig to the program and to the processes that it started.
func (p *process) signalAll(sig os.Signal) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.running() {
		return fmt.Errorf("signal %v: %s does not run", sig, p.path)
	}
	if err := p.cmd.Process.Signal(sig); err != nil {
		return err
	}
	p.paused = sig == sigPause
	_, err := p.signalChildren(sig)
	return err
}

// signalChildren sends sig to the processes that the program started, and returns their
// ids. The caller holds mu.
func (p *process) signalChildren(sig os.Signal) ([]int, error) {
	pids, err := children(p.cmd.Process.Pid)
	if err != nil {
		return nil, err
	}
	for _, pid := range pids {
		child, err := os.FindProcess(pid)
		if err != nil {
			return nil, err
		}
		if err := child.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
			return nil, err
		}
	}
	return pids, nil
}

// kill ends the program and the processes that it started, at once. It is nil when the
// program does not run.
func (p *process) kill() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.running() {
		return nil
	}
	// A program that is paused starts no process that is missed here, and does not see its
	// processes die.
	if err := p.cmd.Process.Signal(sigPause); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	pids, err := p.signalChildren(sigKill)
	if err != nil {
		return err
	}
	if err := p.endLocked(sigKill); err != nil {
		return err
	}
	return poll(func() error {
		if slices.ContainsFunc(pids, exists) {
			return fmt.Errorf("processes of %s live on", p.path)
		}
		return nil
	})
}

// end sends sig and waits until the program has ended, by force if that takes longer than
// ten seconds. It is nil when the program does not run.
func (p *process) end(sig os.Signal) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.running() {
		return nil
	}
	return p.endLocked(sig)
}

// endLocked is end for a caller that holds mu and knows that the program was started.
func (p *process) endLocked(sig os.Signal) error {
	if err := p.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-p.exited:
		return nil
	case <-time.After(10 * time.Second):
	}
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	<-p.exited
	return nil
}

// stop ends the program as it likes to be ended, also while it is paused.
func (p *process) stop() error {
	if p.shutdown == nil {
		return p.kill()
	}
	_ = p.signalAll(sigResume) // fails when it does not run
	return p.end(p.shutdown)
}

func (p *process) logFile() string { return filepath.Join(p.dir, "log") }

// lastWords returns the last lines that the program wrote.
func (p *process) lastWords() string {
	b, err := os.ReadFile(p.logFile())
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	return strings.Join(lines[max(0, len(lines)-15):], "\n")
}

// run runs a program to its end as the user as, and returns an error with its output if
// it fails.
func run(ctx context.Context, as *account, path string, args ...string) (string, error) {
	cmd := command(ctx, as, path, args...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s: %w\n%s", path, err, out)
	}
	return string(out), nil
}

// command returns a command with an environment that settings of this machine's users
// cannot reach.
func command(ctx context.Context, as *account, path string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Dir = "/" // the working directory may be closed to the other user
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "TMPDIR=" + os.TempDir(), "LC_ALL=C", "TZ=UTC"}
	runAs(cmd, as)
	return cmd
}
