//go:build !linux

package servers

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// sleepPrecisely sleeps for d.
func sleepPrecisely(d time.Duration) { time.Sleep(d) } //nolint:forbidigo // it stands for a network

// killWithParent is a no-op: this system has no such feature, and a test process that is
// killed leaves its servers running.
func killWithParent(*exec.Cmd) {}

// children returns the ids of the processes that the process pid started and that have
// not ended.
func children(pid int) ([]int, error) {
	out, err := exec.CommandContext(context.Background(), "pgrep", "-P", strconv.Itoa(pid)).Output()
	var none *exec.ExitError
	if errors.As(err, &none) && none.ExitCode() == 1 {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var pids []int
	for field := range strings.FieldsSeq(string(out)) {
		pid, err := strconv.Atoi(field)
		if err != nil {
			return nil, err
		}
		pids = append(pids, pid)
	}
	return pids, nil
}

// exists reports whether the process has not ended.
func exists(pid int) bool {
	p, err := os.FindProcess(pid)
	return err == nil && p.Signal(syscall.Signal(0)) == nil
}

// cpuTime returns false: other systems have other ways to read the CPU time of processes.
func cpuTime(int) (time.Duration, bool) { return 0, false }
