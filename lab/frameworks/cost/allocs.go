package cost

import (
	"net/http"
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/reprise-go/reprise/lab/bench/load"
	"github.com/reprise-go/reprise/lab/internal/labtest"
)

// NotKeyed is a load of a method that needs no key, with keys that are ignored: the cost
// of framework and handler alone.
const NotKeyed load.Kind = "not-keyed"

// measuredRequests is how many requests an allocation count is the mean of; as many as
// fill pools and maps go before them.
const (
	measuredRequests = 2000
	warmUpRequests   = 500
)

// Allocs returns how many allocations one request to /orders costs the server at addr,
// framework and handler included, when requests arrive over that many connections at
// once, one by one over each.
//
// It counts the allocations of the whole process: run the server in this process and no
// other work. The load allocates hardly any memory.
func Allocs(tb testing.TB, addr string, kind load.Kind, connections int) float64 {
	tb.Helper()
	o := load.Order{Addr: addr, Target: "/orders", Connections: connections, Kind: kind, Marked: true}
	if kind == NotKeyed {
		o.Method, o.Kind = http.MethodPut, load.New
	}
	var before, after runtime.MemStats
	send := func(count int) int {
		o.Count = count
		r, err := load.Run(tb.Context(), o, func() { runtime.ReadMemStats(&before) })
		runtime.ReadMemStats(&after)
		labtest.Must(tb, err)
		return r.Requests
	}
	send(warmUpRequests)
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // a collection empties the pools
	runtime.GC()
	send(warmUpRequests)
	n := send(measuredRequests)
	return float64(after.Mallocs-before.Mallocs) / float64(n)
}
