//go:build !unix

package servers

import (
	"errors"
	"os"
	"os/exec"
)

// Other systems lack the signals that the package needs; it compiles there, but its
// servers fail to start.
var (
	sigKill      = os.Kill
	sigPause     = os.Kill
	sigResume    = os.Kill
	sigImmediate = os.Kill
)

var errNotUnix = errors.New("needs a Unix system")

type account struct{}

func unprivileged() (*account, error) { return nil, errNotUnix }
func runAs(*exec.Cmd, *account)       {}
func give(string, *account) error     { return errNotUnix }
func lock(*os.File) error             { return errNotUnix }
