package faults_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/reprise-go/reprise/servers"
)

// patience bounds how long a run waits for an expected event. Machines are slow.
const patience = 3 * time.Minute

// node is a test server, as a process, and the proxy that clients reach it through.
type node struct {
	name  string
	args  []string
	env   []string
	link  *servers.Proxy
	log   string // file of its standard error
	start int    // how often it was started

	mu     sync.Mutex
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	at     chan string   // its messages about points
	exited chan struct{} // closed when it has
}

// startNode starts a test server that ends with the test.
func startNode(tb testing.TB, dir, name string, env, args []string) *node {
	tb.Helper()
	listen := servers.FreeAddr(tb)
	n := &node{name: name, args: append([]string{"-addr", listen}, args...), env: env, log: filepath.Join(dir, name+".log")}
	addr, err := n.launch(binary(tb))
	if err != nil {
		tb.Fatalf("%s: %v\n%s", name, err, n.lastWords())
	}
	n.link = servers.StartProxy(tb, addr)
	tb.Cleanup(n.kill)
	return n
}

// launch starts the process, and returns where it listens.
func (n *node) launch(path string) (string, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	log, err := os.OpenFile(n.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return "", err
	}
	defer log.Close()
	cmd := exec.Command(path, n.args...) //nolint:noctx // it is killed by its node
	cmd.Env, cmd.Stderr = append(os.Environ(), n.env...), log
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return "", err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", err
	}
	if err := cmd.Start(); err != nil {
		return "", err
	}
	n.start++
	listening, at, exited := make(chan string, 1), make(chan string, 16), make(chan struct{})
	n.cmd, n.stdin, n.at, n.exited = cmd, stdin, at, exited
	go func() {
		defer close(exited)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if addr, ok := strings.CutPrefix(lines.Text(), "listening on "); ok {
				listening <- addr
			} else {
				at <- lines.Text()
			}
		}
		_ = cmd.Wait() // how it ended is in its state
	}()
	select {
	case addr := <-listening:
		return addr, nil
	case <-exited:
		return "", fmt.Errorf("ended: %v", cmd.ProcessState)
	case <-time.After(patience):
		_ = cmd.Process.Kill()
		return "", fmt.Errorf("does not listen after %v", patience)
	}
}

// restart starts the process again, where it listened before. A store that is away just
// now keeps it from starting, so it tries again.
func (n *node) restart(tb testing.TB) {
	tb.Helper()
	deadline := time.Now().Add(patience)
	for {
		_, err := n.launch(binary(tb))
		if err == nil {
			n.link.Reset()
			return
		}
		if time.Now().After(deadline) {
			tb.Errorf("%s does not start again: %v\n%s", n.name, err, n.lastWords())
			return
		}
		sleepFor(50 * time.Millisecond)
	}
}

// arm arms a point, and reports whether the process got there in time. A point that it
// did not get to is disarmed.
func (n *node) arm(point, action string, passages int, wait time.Duration) bool {
	n.tell(point, action, passages)
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for {
		select {
		case got := <-n.at:
			switch got {
			case "at " + point:
				return true
			case "not at " + point:
				return false
			}
		case <-n.exited: // the line may be there
			return slices.Contains(drain(n.at), "at "+point)
		case <-timer.C:
			n.tell(point, "none", 0)
			timer.Reset(patience)
		}
	}
}

// tell sends the process a line. One that ended takes none.
func (n *node) tell(point, action string, passages int) {
	_, _ = fmt.Fprintf(n.stdin, "%s %s %d\n", point, action, passages)
}

func drain(c <-chan string) (all []string) {
	for {
		select {
		case s := <-c:
			all = append(all, s)
		default:
			return all
		}
	}
}

func (n *node) signal(sig syscall.Signal) { _ = n.cmd.Process.Signal(sig) }

// resume lets a process that was stopped go on.
func (n *node) resume() { n.signal(syscall.SIGCONT) }

// kill ends the process at once.
func (n *node) kill() {
	n.signal(syscall.SIGKILL)
	<-n.exited
	_ = n.stdin.Close()
}

// terminate drains the process.
func (n *node) terminate() {
	n.signal(syscall.SIGTERM)
	select {
	case <-n.exited:
	case <-time.After(patience):
		n.kill()
	}
	_ = n.stdin.Close()
}

// lastWords returns the end of the log.
func (n *node) lastWords() string {
	b, _ := os.ReadFile(n.log)
	return string(b[max(0, len(b)-2000):])
}

func sleepFor(d time.Duration) { sleep(context.Background(), d) }
