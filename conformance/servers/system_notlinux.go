//go:build !linux

package servers

import "os/exec"

// killWithParent does nothing: there is no such thing here, and a test process that is killed leaves its servers running.
func killWithParent(*exec.Cmd) {}
