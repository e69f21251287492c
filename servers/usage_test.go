package servers

import (
	"os"
	"runtime"
	"testing"
)

// The CPU time of a server grows with its work, and includes its processes.
func TestUsageGrowsWithTheWork(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells the CPU time of other processes")
	}
	s := StartPostgres(t)
	before := s.Usage(t)
	if len(before) < 2 {
		t.Fatalf("usage of %d processes, want the server and those that it started", len(before))
	}
	if used := s.Usage(t).Since(before); used < 0 {
		t.Errorf("the server used %v", used)
	}
	own, err := UsageOf(os.Getpid())
	if err != nil || own[os.Getpid()] <= 0 {
		t.Errorf("usage of this process: %v, %v", own, err)
	}
}
