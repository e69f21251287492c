// Package usage tells what a server has used, so that whoever loads it can take the
// difference.
package usage

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"
)

// Path is where a server answers with a [Report] as text.
const Path = "/usage"

// Body and ContentType are what every server answers to POST /orders, with the status
// 201.
const (
	ContentType = "application/json"
	Body        = `{"id":"ord_00000000000000000001","status":"created","currency":"EUR","amount":1999,"customer":"cus_000000000000000000000001",` +
		`"items":[{"sku":"sku_0001","quantity":1,"price":999},{"sku":"sku_0002","quantity":2,"price":500}],"created":"2026-01-01T00:00:00Z"}`
)

// Runs counts the runs of the handler of this process.
var Runs atomic.Int64

// Report is what a server has used since it started.
type Report struct {
	Runs    int64         // of the handler
	Mallocs uint64        // of the process
	Bytes   uint64        // that it allocated
	CPU     time.Duration // of the process, in user mode and in the kernel
}

const format = "%d %d %d %d"

// Now reports for this process.
func Now() (Report, error) {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return Report{}, err
	}
	return Report{Runs.Load(), m.Mallocs, m.TotalAlloc, time.Duration(u.Utime.Nano() + u.Stime.Nano())}, nil
}

// String returns the report as [Parse] reads it.
func (r Report) String() string {
	return fmt.Sprintf(format, r.Runs, r.Mallocs, r.Bytes, r.CPU.Nanoseconds())
}

// Parse reads what String returned.
func Parse(s string) (r Report, err error) {
	_, err = fmt.Sscanf(s, format, &r.Runs, &r.Mallocs, &r.Bytes, &r.CPU)
	return r, err
}

// Sub returns what was used from the report before to this one.
func (r Report) Sub(before Report) Report {
	return Report{r.Runs - before.Runs, r.Mallocs - before.Mallocs, r.Bytes - before.Bytes, r.CPU - before.CPU}
}
