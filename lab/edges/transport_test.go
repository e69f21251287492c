package edges_test

import (
	"net/http"
	"sync"
	"testing"

	"connectrpc.com/connect"

	repriseclient "github.com/reprise-go/reprise/client"
	"github.com/reprise-go/reprise/lab/internal/labtest"
)

// The clients whose calls go through a transport below connect-go, which sees only
// requests and responses of HTTP.
var transported = []caller{
	overTransport("Connect over HTTP 1.1", false),
	overTransport("Connect with JSON over HTTP 2", true, connect.WithProtoJSON(), connect.WithSendGzip()),
	overTransport("gRPC by Connect", true, connect.WithGRPC()),
}

func overTransport(name string, h2 bool, options ...connect.ClientOption) caller {
	return caller{name: name, serve: startConnect, dial: func(t *testing.T, addr string, c callerConfig) client {
		t.Helper()
		to := dialConnect(t, addr, h2, options...).(connectClient)
		transport, err := repriseclient.NewTransport(to.http.Transport, c.Client)
		labtest.Must(t, err)
		to.http = &http.Client{Transport: transport}
		return to
	}}
}

// A call waits for the one in progress, whose refusal is a 409 of Connect, or a 200 of
// gRPC.
func TestTransportWaitsForTheCallInProgress(t *testing.T) {
	t.Parallel()
	for _, c := range transported {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h, running, letGo := hold()
			once := sync.OnceFunc(letGo)
			cfg := quick()
			cfg.MaxAttempts, cfg.Budget = 2, repriseclient.Budget{Burst: 1}
			s := c.start(t, setup{handler: h}, callerConfig{Client: cfg})
			s.log.each = func(n int, e repriseclient.AttemptEnd) {
				if n == 2 {
					once()
				}
				if e.Retry && e.Code != repriseclient.CodeInProgress {
					t.Errorf("attempt %d ended as %+v", n, e)
				}
			}
			ended := make(chan answer, 1)
			go func() { ended <- dialGRPC(t, s.proxy.Addr()).call(t.Context(), keyed(`"k"`)) }()
			<-running
			a := s.service.call(repriseclient.WithKey(t.Context(), "k"), call{})
			once() // if the client did not wait
			if a.err != nil || string(a.body) != "done" || !a.replayed() {
				t.Errorf("the client got %+v", a)
			}
			s.log.want(t, repriseclient.AnsweredReplay, 3)
			<-ended
			s.wantRuns(s.service, 1)
		})
	}
}
