package servers

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// killWithParent has the kernel kill the program of cmd when the thread that starts it ends.
func killWithParent(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
}

// children returns the ids of the processes that the process pid started and that have not ended.
func children(pid int) ([]int, error) {
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, stat := range stats {
		b, err := os.ReadFile(stat)
		if err != nil {
			continue // it ended
		}
		// pid (name) state parent …, where the name may contain anything
		text := string(b)
		head, tail := text[:strings.IndexByte(text, ' ')], text[strings.LastIndexByte(text, ')')+1:]
		if f := strings.Fields(tail); len(f) < 2 || f[1] != strconv.Itoa(pid) {
			continue
		}
		child, err := strconv.Atoi(head)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", stat, err)
		}
		pids = append(pids, child)
	}
	return pids, nil
}
