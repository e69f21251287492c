package testapp

import (
	"sync"
	"testing"

	"github.com/reprise-go/reprise/conformance"
	"github.com/reprise-go/reprise/conformance/adaptertest"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/store"
)

// OverMemory returns the fixtures of an adapter whose native server build makes, each
// over a memory store of its own.
func OverMemory(build func(*App) Server, waivers ...conformance.Waiver) func(testing.TB) adaptertest.Fixture {
	return func(testing.TB) adaptertest.Fixture {
		st := sync.OnceValue(memstore.New) // two handles of a case are two processes
		return adaptertest.Fixture{
			Open: func(testing.TB) store.Store { return st() }, Serve: InTest(build), Waivers: waivers,
		}
	}
}

// FastHTTPWaivers are those of every adapter on fasthttp.
var FastHTTPWaivers = []conformance.Waiver{
	{Case: "R1e", Silent: true, Says: "no handler started", Reason: "fasthttp reads the whole body before any handler, with a key or without"},
	{Case: "R17a", Silent: true, Says: "103 Early Hints", Reason: "fasthttp sends no informational answers"},
	{Case: "R28a", Silent: true, Says: "read an answer", Reason: "fasthttp asks the client to continue before any handler, so the refusal comes after the body"},
}
