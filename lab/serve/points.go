//go:build !reprise_faults

package serve

import (
	"io"
	"net"
)

// addPoints is a no-op: only a build with the tag reprise_faults has points at which a
// process can be killed or stopped.
func addPoints(*Backend, io.Writer) error { return nil }

// pointsOn returns the listener.
func pointsOn(l net.Listener) net.Listener { return l }
