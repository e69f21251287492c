package servers

import (
	"testing"
	"time"
)

// Usage is the CPU time that the processes of a server have used so far, by their ids.
type Usage map[int]time.Duration

// Since returns the CPU time since the report before, without the processes that have
// ended since.
func (u Usage) Since(before Usage) time.Duration {
	var sum time.Duration
	for pid, used := range u {
		sum += used - before[pid]
	}
	return sum
}

// UsageOf returns the CPU time of a process and of those that it started. It is empty
// where the system does not tell.
func UsageOf(pid int) (Usage, error) {
	pids, err := children(pid)
	if err != nil {
		return nil, err
	}
	u := Usage{}
	for _, pid := range append(pids, pid) {
		if used, ok := cpuTime(pid); ok {
			u[pid] = used
		}
	}
	return u, nil
}

// Usage returns the CPU time of the server, which was started here.
func (c *control) Usage(tb testing.TB) Usage {
	tb.Helper()
	u, err := UsageOf(c.own().pid())
	must(tb, err)
	return u
}
