package frameworks

import (
	"net/http"
	"testing"

	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/reprisetest"
)

// Users test their handlers in every framework that is an http.Handler with the same few
// lines.
func TestReprisetestInFrameworks(t *testing.T) {
	t.Parallel()
	for name, build := range costFrameworks {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			app := reprisetest.New(t, protocol.Config{Required: true}, func(guard *protocol.Guard) http.Handler { return build(guard) })
			order := func() *http.Request { return reprisetest.Post("/orders", `{"item":"book"}`) }
			reprisetest.Replay(t, app.Handler(), order())
			reprisetest.Race(t, app.Handler(), 10, order())
			app.StoreDown(order())
			app.StoreFailsAfterRun(order())
			app.StoreLosesReply(order())
			app.Lapse(order())
			app.Crash(order())
		})
	}
}
