// Package labtest has the helpers that tests of several packages of the lab share: their
// TestMain, the length of soak tests, and stores on the servers of the package servers.
package labtest

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/reprise-go/reprise/servers"
)

// Main runs the tests of a room, stops the servers that they share, and fails a run that
// passed and left a goroutine behind. It ends the process, and calls after before.
func Main(m *testing.M, after ...func()) {
	code := servers.Main{M: m}.Run()
	for _, f := range after {
		f()
	}
	if code == 0 {
		err := goleak.Find(
			goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"),    // a clock that cannot be stopped
			goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2"), // sleeps for ten seconds before it looks
			// A failover client of go-redis asks DNS for a host of the name FailoverClient, to see
			// whether it is private, and where DNS is slow its lookup outlives the client.
			goleak.IgnoreAnyFunction("net.(*Resolver).lookupIPAddr.func1"),
			goleak.IgnoreAnyFunction("net.(*Resolver).lookupIPAddr.func2"),
			goleak.IgnoreAnyFunction("net.(*Resolver).goLookupIPCNAMEOrder.func3.1"),
		)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}
