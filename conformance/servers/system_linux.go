package servers

import (
	"os/exec"
	"syscall"
)

// killWithParent has the kernel kill the program of cmd when the thread that starts it ends.
func killWithParent(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
}
