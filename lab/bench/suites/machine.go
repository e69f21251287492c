package suites

import (
	"context"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strconv"
	"strings"

	"github.com/reprise-go/reprise/lab/bench/report"
)

// thisMachine describes the machine, as far as it tells.
func thisMachine(ctx context.Context, hasNode bool) report.Machine {
	m := report.Machine{Cores: runtime.NumCPU(), Go: runtime.Version(), Load: loadAverage()}
	if data, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		if found := regexp.MustCompile(`model name\s*: (.*)`).FindSubmatch(data); found != nil {
			m.CPU = string(found[1])
		}
	}
	if hasNode {
		if out, err := exec.CommandContext(ctx, "node", "--version").Output(); err == nil {
			m.Node = strings.TrimSpace(string(out))
		}
	}
	return m
}

// loadAverage is that of the last minute, and 0 where the system does not tell.
func loadAverage() float64 {
	data, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0
	}
	load, _, _ := strings.Cut(string(data), " ")
	average, _ := strconv.ParseFloat(load, 64)
	return average
}
