package suites

import (
	"context"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/reprise-go/reprise/lab/bench/report"
	"github.com/reprise-go/reprise/servers"
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

// machineUse is the CPU time that was used on the machine so far.
type machineUse struct {
	at   time.Time
	all  time.Duration // by all processes, and by the host of a virtual machine
	ours servers.Usage // by this process, the load, the server and the store
}

// machineUse reads the CPU time so far. It is zero where the system does not tell.
func (p *place) machineUse() machineUse {
	u := machineUse{at: time.Now(), ours: servers.Usage{}}
	data, err := os.ReadFile("/proc/stat")
	if err != nil {
		return u
	}
	first, _, _ := strings.Cut(string(data), "\n")
	const idle, ioWait, steal = 3, 4, 7
	for i, field := range strings.Fields(strings.TrimPrefix(first, "cpu ")) {
		if ticks, err := strconv.ParseInt(field, 10, 64); err == nil && i <= steal && i != idle && i != ioWait {
			u.all += time.Duration(ticks) * time.Second / 100
		}
	}
	if own, err := servers.UsageOf(os.Getpid()); err == nil {
		u.ours = own
	}
	for _, of := range p.usage {
		maps.Copy(u.ours, of(p.host))
	}
	return u
}

// others returns the number of cores that other processes kept busy since before.
func (u machineUse) others(before machineUse) float64 {
	return max(0, (u.all-before.all-u.ours.Since(before.ours)).Seconds()/u.at.Sub(before.at).Seconds())
}
