package servers

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"
)

// sleepPrecisely sleeps for d. The timers of Go are as coarse as a millisecond in an idle
// process.
func sleepPrecisely(d time.Duration) {
	if d <= 0 {
		return
	}
	left := syscall.NsecToTimespec(d.Nanoseconds())
	for {
		if err := syscall.Nanosleep(&left, &left); !errors.Is(err, syscall.EINTR) {
			return
		}
	}
}

// killWithParent has the kernel kill the program of cmd when the thread that starts it
// ends.
func killWithParent(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
}

// children returns the ids of the processes that the process pid started and that have
// not ended.
func children(pid int) ([]int, error) {
	paths, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, path := range paths {
		child, err := strconv.Atoi(filepath.Base(path))
		if err != nil {
			return nil, err
		}
		if _, parent := status(child); parent == pid {
			pids = append(pids, child)
		}
	}
	return pids, nil
}

// exists reports whether the process has not ended. One that ended and was not waited for
// does not exist.
func exists(pid int) bool {
	state, _ := status(pid)
	return state != "" && state != "Z" && state != "X"
}

// status returns the state of a process as ps shows it, and its parent. The state is
// empty if there is no such process.
func status(pid int) (state string, parent int) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", 0
	}
	// pid (name) state parent …, where the name may contain anything
	f := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
	if len(f) < 2 {
		return "", 0
	}
	parent, _ = strconv.Atoi(f[1])
	return f[0], parent
}

// cpuTime returns the CPU time that a process has used, and false if there is no such
// process. It reads the clock of the process, which counts nanoseconds; those of /proc
// count hundredths of a second.
func cpuTime(pid int) (time.Duration, bool) {
	const scheduled = 2 // the clock of the scheduler, in the lowest bits of the id that clock_getcpuclockid(3) makes
	var t syscall.Timespec
	_, _, failed := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, uintptr(^pid<<3|scheduled), uintptr(unsafe.Pointer(&t)), 0) //nolint:gosec // the system call wants it so
	return time.Duration(t.Nano()), failed == 0
}
