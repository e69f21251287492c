package etcd_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/connectivity"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/etcd/etcdcluster"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/servers"
)

// The first operation after a server is back is answered by it, whatever the client's own
// pauses are: here it would try again after an hour. Until then a policy that fails open
// runs unprotected, and one that fails closed refuses.
func TestFirstOperationAsksAServerThatIsBack(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]struct {
		fail, end func(testing.TB, *servers.EtcdMember, *servers.Proxy)
	}{
		"killed": {
			func(tb testing.TB, m *servers.EtcdMember, p *servers.Proxy) { m.Kill(tb) },
			func(tb testing.TB, m *servers.EtcdMember, _ *servers.Proxy) { m.Restart(tb) },
		},
		"frozen": {
			func(tb testing.TB, m *servers.EtcdMember, _ *servers.Proxy) { m.Pause(tb) },
			func(tb testing.TB, m *servers.EtcdMember, _ *servers.Proxy) { m.Resume(tb) },
		},
		"refusing": {
			func(tb testing.TB, _ *servers.EtcdMember, p *servers.Proxy) { p.Set(tb, servers.Refuse) },
			func(tb testing.TB, _ *servers.EtcdMember, p *servers.Proxy) { p.Heal(tb) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			member := etcdcluster.Start(t, 1).Members[0]
			proxy := servers.StartProxy(t, member.Addr())
			addr := member.Addr()
			if name == "refusing" {
				addr = proxy.Addr()
			}
			client, err := clientv3.New(clientv3.Config{
				Endpoints: []string{addr}, Logger: zap.NewNop(),
				DialKeepAliveTime: 10 * time.Second, DialKeepAliveTimeout: 3 * time.Second, PermitWithoutStream: true,
				DialOptions: []grpc.DialOption{grpc.WithConnectParams(grpc.ConnectParams{
					Backoff: backoff.Config{BaseDelay: time.Hour, Multiplier: 1, MaxDelay: time.Hour}, MinConnectTimeout: 20 * time.Second,
				})},
			})
			labtest.Must(t, err)
			t.Cleanup(func() { _ = client.Close() })
			st := etcdcluster.Open(t, client, etcdcluster.Prefix())
			begin := func(what string, timeout time.Duration, failOpen bool) (reprise.Result, error) {
				engine, err := reprise.New(st, reprise.Config{ClaimTimeout: timeout})
				labtest.Must(t, err)
				defer func() {
					closing, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
					defer cancel()
					_ = engine.Close(closing)
				}()
				got, err := engine.Begin(t.Context(), reprise.Operation{
					Scope: "back", Key: fmt.Sprint(what, failOpen), Fingerprint: store.Fingerprint{1}, Retention: time.Hour, FailOpen: failOpen,
				})
				if got.Attempt != nil {
					_ = got.Attempt.Release()
				}
				return got, err
			}
			of.fail(t, member, proxy)
			etcdcluster.Eventually(t, func() error { // until its keep-alive ends the connection to a frozen member
				if client.ActiveConnection().GetState() == connectivity.Ready {
					return errors.New("the client keeps its connection")
				}
				return nil
			})
			if _, _, err := st.Watch(t.Context(), store.ID{}); !errors.Is(err, store.ErrUnavailable) {
				t.Errorf("a watch: %v", err)
			}
			if got, err := begin("away", time.Second, true); err != nil || got.Outcome != reprise.Unprotected {
				t.Errorf("fails open: %v, %v", got.Outcome, err)
			}
			if got, err := begin("away", time.Second, false); err == nil {
				t.Errorf("fails closed: %v", got.Outcome)
			}
			of.end(t, member, proxy)
			etcdcluster.Open(t, etcdcluster.Connect(t, member.Addr()), etcdcluster.Prefix()) // it answers another client
			for _, failOpen := range []bool{true, false} {
				if got, err := begin("back", time.Minute, failOpen); err != nil || got.Outcome != reprise.Claimed {
					t.Errorf("back, fails open %t: %v, %v", failOpen, got.Outcome, err)
				}
			}
		})
	}
}
