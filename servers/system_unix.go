//go:build unix

package servers

import (
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"syscall"
)

// The signals that the servers are sent.
const (
	sigKill      = syscall.SIGKILL
	sigPause     = syscall.SIGSTOP
	sigResume    = syscall.SIGCONT
	sigImmediate = syscall.SIGQUIT // PostgreSQL: stop at once, recover at the next start
)

// account is a user of this machine to run a server as.
type account struct{ uid, gid uint32 }

// unprivileged returns an account for servers that refuse to run as root, and nil if this
// process is not root's.
func unprivileged() (*account, error) {
	if os.Geteuid() != 0 {
		return nil, nil //nolint:nilnil // nil is this process's own user
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		u, err = user.Lookup("nobody")
	}
	if err != nil {
		return nil, err
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return nil, err
	}
	return &account{uint32(uid), uint32(gid)}, nil
}

// runAs makes cmd run as another user. A nil account is the user of this process.
func runAs(cmd *exec.Cmd, as *account) {
	if as == nil {
		return
	}
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Credential = &syscall.Credential{Uid: as.uid, Gid: as.gid}
}

// give makes the account the owner of path.
func give(path string, to *account) error {
	if to == nil {
		return nil
	}
	return os.Chown(path, int(to.uid), int(to.gid))
}

// lock takes the lock of an open file or directory, which ends with it. It does not wait.
func lock(f *os.File) error {
	return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
}
