package cost

import (
	"net/http"
	"testing"

	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/reprisetest"
)

// Reprisetest tests a handler as its author does, with the few lines that are the same in
// every framework. build returns the handler at POST /orders.
func Reprisetest(t *testing.T, build func(*protocol.Guard) http.Handler) {
	t.Helper()
	app := reprisetest.New(t, protocol.Config{Required: true}, build)
	order := func() *http.Request { return reprisetest.Post("/orders", `{"item":"book"}`) }
	reprisetest.Replay(t, app.Handler(), order())
	reprisetest.Race(t, app.Handler(), 10, order())
	app.StoreDown(order())
	app.StoreFailsAfterRun(order())
	app.StoreLosesReply(order())
	app.Lapse(order())
	app.Crash(order())
}
