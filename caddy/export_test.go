package reprisecaddy

import (
	"context"
	"time"
)

// Exit does what a process does that exits, once for each test.
func Exit(ctx context.Context) {
	exit(ctx)
	exiting = make(chan struct{})
}

// SetLinger sets how long a handler stays open that is replaced from now on.
func SetLinger(d time.Duration) { linger = d }

// Users returns how many handlers have a store open.
func Users(store string) int {
	n, _ := stores.References(store)
	return n
}
