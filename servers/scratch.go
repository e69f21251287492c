package servers

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"
)

const scratchPrefix = "reprise-server-"

var sweepOnce sync.Once

// scratch returns a new directory that belongs to the account, removed by the cleaner.
//
// This process holds the directory's lock until then. A directory without a holder was
// left by a process that was killed, and the first call of scratch in the next process
// removes it.
func scratch(c cleaner, owner *account) (string, error) {
	sweepOnce.Do(sweep)
	dir, err := os.MkdirTemp("", scratchPrefix)
	if err != nil {
		return "", err
	}
	held, err := os.Open(dir)
	if err != nil {
		return "", err
	}
	c.Cleanup(func() {
		_ = os.RemoveAll(dir) // the sweep removes the rest
		_ = held.Close()
	})
	if err := lock(held); err != nil {
		return "", fmt.Errorf("lock %s: %w", dir, err)
	}
	return dir, give(dir, owner)
}

// sweep removes the directories of test processes that are gone.
func sweep() {
	const young = time.Minute // may not be locked yet
	dirs, _ := filepath.Glob(filepath.Join(os.TempDir(), scratchPrefix+"*"))
	for _, dir := range dirs {
		info, err := os.Stat(dir)
		if err != nil || time.Since(info.ModTime()) < young {
			continue
		}
		f, err := os.Open(dir)
		if err != nil {
			continue // another user's
		}
		if lock(f) == nil {
			removeSegment(filepath.Join(dir, pgData))
			_ = os.RemoveAll(dir)
		}
		_ = f.Close()
	}
}
