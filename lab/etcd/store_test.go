package etcd_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/etcd/etcdcluster"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/servers"
	repriseetcd "github.com/reprise-go/reprise/store/etcd"
)

// single is a cluster of one member, which tests share that do not hurt it.
func single(tb testing.TB) *clientv3.Client {
	tb.Helper()
	return etcdcluster.Connect(tb, etcdcluster.Start(tb, 1).Addrs()...)
}

// claimOf returns the claim of a new operation.
func claimOf(name string) store.ClaimRequest {
	return store.ClaimRequest{
		ID: store.DeriveID("test", "", name), Owner: store.NewOwner(), Fingerprint: store.Fingerprint{1}, Lease: time.Minute,
		Policy: store.Policy{Retention: time.Hour},
	}
}

// claimed claims a new operation.
func claimed(tb testing.TB, st store.Store, name string) (store.ClaimRequest, store.CompleteRequest) {
	tb.Helper()
	r := claimOf(name)
	got, err := st.Claim(tb.Context(), r)
	if err != nil || got.Outcome != store.Claimed {
		tb.Fatalf("%s: %v, %v", name, got.Outcome, err)
	}
	end := completionOf(&r, &got)
	return r, end
}

func completionOf(r *store.ClaimRequest, got *store.ClaimResult) store.CompleteRequest {
	return store.CompleteRequest{
		ID: r.ID, Owner: r.Owner, Fingerprint: r.Fingerprint, Policy: r.Policy, Attempt: got.Attempt, Fence: got.Fence,
	}
}

// large returns a payload of several parts that are all alike.
func large(b byte) []byte { return bytes.Repeat([]byte{b}, 3<<20) }

// Of attempts that complete at once, one is an attempt that lost its record. It leaves no
// parts.
func TestLostAttemptLeavesNoPartsAndHurtsNone(t *testing.T) {
	t.Parallel()
	client, mine := single(t), etcdcluster.Prefix()
	st := etcdcluster.Open(t, client, mine)
	r := claimOf("lost")
	r.Lease = time.Second
	got, err := st.Claim(t.Context(), r)
	labtest.Must(t, err)
	lost := completionOf(&r, &got)
	next := r
	next.Owner, next.Takeover = store.NewOwner(), true
	etcdcluster.Eventually(t, func() error {
		if got, err = st.Claim(t.Context(), next); err != nil || got.Outcome != store.Claimed {
			return fmt.Errorf("%v, %w", got.Outcome, err)
		}
		return nil
	})
	winner := completionOf(&next, &got)
	lost.Payload, winner.Payload = large('l'), large('w')
	labtest.Must(t, st.Complete(t.Context(), winner))
	if err := st.Complete(t.Context(), lost); !errors.Is(err, store.ErrLeaseLost) {
		t.Errorf("the lost attempt: %v", err)
	}
	again, err := st.Claim(t.Context(), claimOf("lost"))
	if err != nil || !bytes.Equal(again.Payload, large('w')) {
		t.Errorf("%v, %v, not the payload of the winner", again.Outcome, err)
	}
	left, err := client.Get(t.Context(), mine+"b/", clientv3.WithPrefix(), clientv3.WithCountOnly())
	if err != nil || left.Count != 5 { // and the last half of a MiB is with the record
		t.Errorf("%d parts, %v, want those of the winner only", left.Count, err)
	}
}

// failing is a client whose requests of one method fail with err, after the first few.
type failing struct {
	method string
	left   atomic.Int64
	err    error
}

func (f *failing) connect(tb testing.TB, addrs ...string) *clientv3.Client {
	tb.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: addrs, Logger: zap.NewNop(), DialOptions: []grpc.DialOption{grpc.WithChainUnaryInterceptor(f.invoke)}})
	labtest.Must(tb, err)
	tb.Cleanup(func() { _ = client.Close() })
	return client
}

func (f *failing) invoke(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	if path.Base(method) == f.method && f.left.Add(-1) < 0 {
		return f.err
	}
	return invoke(ctx, method, req, reply, conn, opts...)
}

// A try that fails while it sends parts deletes them. One whose commit may have been
// executed cannot; the next deletes them together with its commit.
func TestFailedCompletionsLeaveNoParts(t *testing.T) {
	t.Parallel()
	addrs, mine := etcdcluster.Start(t, 1).Addrs(), etcdcluster.Prefix()
	plain := etcdcluster.Connect(t, addrs...)
	for method, left := range map[string]struct{ sent, parts int64 }{ // Txn reads first
		"Put": {3, 0}, "Txn": {1, 5},
	} {
		_, end := claimed(t, etcdcluster.Open(t, plain, mine), method)
		end.Payload = large('x')
		fault := failing{method: method, err: status.Error(codes.Aborted, "cut")}
		broken, err := repriseetcd.New(fault.connect(t, addrs...), repriseetcd.Config{Prefix: mine})
		labtest.Must(t, err)
		end.Attempt = 0 // another process claimed it
		fault.left.Store(left.sent)
		wantParts := func(when string, want int64) {
			t.Helper()
			got, err := plain.Get(t.Context(), mine+"b/"+hex.EncodeToString(end.ID[:]), clientv3.WithPrefix(), clientv3.WithCountOnly())
			if err != nil || got.Count != want {
				t.Errorf("%s, %s: %d parts, %v; want %d", method, when, got.Count, err, want)
			}
		}
		if err := broken.Complete(t.Context(), end); !errors.Is(err, store.ErrUnknown) {
			t.Errorf("%s: %v, want ErrUnknown", method, err)
		}
		wantParts("failed", left.parts)
		fault.left.Store(1000)
		if err := broken.Complete(t.Context(), end); err != nil {
			t.Errorf("%s: %v", method, err)
		}
		wantParts("completed", 5)
	}
}

// A reader gets the parts of the revision at which it saw the record.
func TestLargePayloadIsReadWholeWhileItIsReplaced(t *testing.T) {
	t.Parallel()
	st := etcdcluster.Open(t, single(t), etcdcluster.Prefix())
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var readers sync.WaitGroup
	id := claimOf("replaced").ID
	for range 4 {
		readers.Go(func() {
			for ctx.Err() == nil {
				got, err := st.Inspect(context.WithoutCancel(ctx), id)
				switch {
				case errors.Is(err, store.ErrNotFound):
				case err != nil:
					t.Error(err)
				case got.State == store.StateCompleted && !bytes.Equal(got.Payload, large(got.Payload[0])):
					t.Error("parts of two payloads")
				}
			}
		})
	}
	for n := range 20 {
		_, end := claimed(t, st, "replaced")
		end.Payload = large(byte(n))
		labtest.Must(t, st.Complete(t.Context(), end))
		if err := st.Resolve(t.Context(), id, store.Resolution{State: store.StateCompleted, Fence: end.Fence, Forget: true}); err != nil {
			t.Fatal(err)
		}
	}
	stop()
	readers.Wait()
}

// lonely starts a cluster of three and kills two, so that the third has no leader, as a
// member behind a partition.
func lonely(t *testing.T) *servers.EtcdMember {
	t.Helper()
	cluster := etcdcluster.Start(t, 3)
	cluster.Members[0].Kill(t)
	cluster.Members[1].Kill(t)
	return cluster.Members[2]
}

// A client knows a member behind a partition, and two that have a leader. No operation
// fails because of the first.
func TestMemberBehindAPartitionIsAvoided(t *testing.T) {
	t.Parallel()
	away := lonely(t)
	healthy := etcdcluster.Start(t, 1)
	alone, err := repriseetcd.New(etcdcluster.Connect(t, away.Addr()), repriseetcd.Config{Prefix: etcdcluster.Prefix()})
	labtest.Must(t, err)
	etcdcluster.Eventually(t, func() error {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second) // longer than a member waits for its leader
		defer cancel()
		if _, err := alone.Claim(ctx, claimOf("alone")); !errors.Is(err, store.ErrUnavailable) {
			return err
		}
		return nil
	})
	st, err := repriseetcd.New(etcdcluster.Connect(t, away.Addr(), healthy.Addrs()[0]), repriseetcd.Config{Prefix: etcdcluster.Prefix()})
	labtest.Must(t, err)
	for n := range 20 {
		_, end := claimed(t, st, strconv.Itoa(n))
		if err := st.Complete(t.Context(), end); err != nil {
			t.Errorf("complete: %v", err)
		}
	}
}

// An operator revoked all leases, or the cluster was restored without them.
func TestRevokedLeasesAreReplaced(t *testing.T) {
	t.Parallel()
	client := single(t)
	st := etcdcluster.Open(t, client, etcdcluster.Prefix())
	_, end := claimed(t, st, "before")
	revoke := func() {
		leases, err := client.Leases(t.Context())
		labtest.Must(t, err)
		for _, l := range leases.Leases {
			if _, err := client.Revoke(t.Context(), l.ID); err != nil {
				t.Fatal(err)
			}
		}
	}
	revoke()
	if err := st.Complete(t.Context(), end); !errors.Is(err, store.ErrLeaseLost) {
		t.Errorf("the record is gone: %v, want ErrLeaseLost", err)
	}
	_, end = claimed(t, st, "after")
	end.Payload = large('x')
	if err := st.Complete(t.Context(), end); err != nil {
		t.Error(err)
	}
	revoke()
	_, end = claimed(t, st, "after")
	end.Payload = large('y')
	if err := st.Complete(t.Context(), end); err != nil {
		t.Error(err)
	}
	if got, err := st.Claim(t.Context(), claimOf("after")); err != nil || !bytes.Equal(got.Payload, large('y')) {
		t.Errorf("%v, %v", got.Outcome, err)
	}
}

// The request that crosses the quota is executed, and gets the same error as those that
// are refused afterwards. ErrFull is definite.
func TestFullServerKeepsNoRecordOfARefusedClaim(t *testing.T) {
	t.Parallel()
	client := etcdcluster.Connect(t, etcdcluster.Start(t, 1, "--quota-backend-bytes", strconv.Itoa(8<<20)).Addrs()...)
	st := etcdcluster.Open(t, client, etcdcluster.Prefix())
	old, end := claimed(t, st, "old")
	labtest.Must(t, st.Complete(t.Context(), end))
	running, finish := claimed(t, st, "running")
	var callers sync.WaitGroup
	for caller := range 8 {
		callers.Go(func() {
			filled := 0
			for n := 0; filled < 20 && n < 2000; n++ {
				r := claimOf(fmt.Sprintf("%d of %d", n, caller))
				got, err := st.Claim(t.Context(), r)
				switch {
				case err == nil:
					c := completionOf(&r, &got)
					c.Payload = make([]byte, 32<<10)
					_ = st.Complete(t.Context(), c)
				case errors.Is(err, store.ErrFull):
					filled++
					if left, err := st.Inspect(t.Context(), r.ID); !errors.Is(err, store.ErrNotFound) {
						t.Errorf("a claim was refused, and there is its record: %+v, %v", left, err)
					}
				case !errors.Is(err, store.ErrUnknown):
					t.Error(err)
				}
			}
			if filled < 20 {
				t.Errorf("%d refusals", filled)
			}
		})
	}
	callers.Wait()
	if findings, err := st.Check(t.Context()); err != nil || !slices.ContainsFunc(findings, func(f store.Finding) bool { return f.Code == "space" }) ||
		!slices.ContainsFunc(findings, func(f store.Finding) bool { return f.Code == "no-space" }) {
		t.Errorf("a full server: %+v, %v", findings, err)
	}
	if err := st.Complete(t.Context(), finish); !errors.Is(err, store.ErrFull) {
		t.Errorf("a completion: %v, want ErrFull", err)
	}
	old.Owner = store.NewOwner()
	if got, err := st.Claim(t.Context(), old); err != nil || got.Outcome != store.Completed {
		t.Errorf("a replay: %v, %v", got.Outcome, err)
	}
	if err := st.Release(t.Context(), running.ID, running.Owner); err != nil {
		t.Errorf("a release, which takes no room: %v", err)
	}
}

// secured starts a member that knows passwords, and serves TLS at an address of its own.
// Its certificate is in a file. The password of each user is "secret", and the role of
// payments is that of the keys below mine/.
func secured(t *testing.T) (addr, certificate string) {
	t.Helper()
	served := httptest.NewTLSServer(nil)
	served.Close()
	key, err := x509.MarshalPKCS8PrivateKey(served.TLS.Certificates[0].PrivateKey)
	labtest.Must(t, err)
	dir := t.TempDir()
	write := func(name, kind string, der []byte) string {
		name = filepath.Join(dir, name)
		labtest.Must(t, os.WriteFile(name, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
		return name
	}
	addr, certificate = servers.FreeAddr(t), write("cert.pem", "CERTIFICATE", served.Certificate().Raw)
	plain := etcdcluster.Start(t, 1, "--listen-client-urls", "http://{client},https://"+addr, "--cert-file", certificate, "--key-file", write("key.pem", "PRIVATE KEY", key))
	root := etcdcluster.Connect(t, plain.Addrs()...)
	must := func(_ any, err error) {
		t.Helper()
		labtest.Must(t, err)
	}
	must(root.RoleAdd(t.Context(), "reprise"))
	must(root.RoleGrantPermission(t.Context(), "reprise", "mine/", clientv3.GetPrefixRangeEnd("mine/"), clientv3.PermissionType(clientv3.PermReadWrite)))
	for _, user := range []string{"root", "payments", "nothing"} {
		must(root.UserAdd(t.Context(), user, "secret"))
	}
	must(root.UserGrantRole(t.Context(), "root", "root"))
	must(root.UserGrantRole(t.Context(), "payments", "reprise"))
	must(root.AuthEnable(t.Context()))
	return addr, certificate
}

// Users have permissions for the keys of the store, and need no others.
func TestUserNeedsThePrefixOnly(t *testing.T) {
	t.Parallel()
	addr, certificate := secured(t)
	trusted := x509.NewCertPool()
	text, err := os.ReadFile(certificate)
	labtest.Must(t, err)
	trusted.AppendCertsFromPEM(text)
	as := func(user string) *clientv3.Client {
		client, err := clientv3.New(clientv3.Config{
			Endpoints: []string{"https://" + addr}, Username: user, Password: "secret", DialTimeout: 10 * time.Second, Logger: zap.NewNop(),
			TLS: &tls.Config{RootCAs: trusted, MinVersion: tls.VersionTLS12},
		})
		labtest.Must(t, err)
		t.Cleanup(func() { _ = client.Close() })
		return client
	}
	st := etcdcluster.Open(t, as("payments"), "mine/")
	_, end := claimed(t, st, "large")
	end.Payload = large('x')
	if err := st.Complete(t.Context(), end); err != nil {
		t.Error(err)
	}
	if _, err := st.List(t.Context(), store.Query{Limit: 10}); err != nil {
		t.Error(err)
	}
	_, stop := watch(t.Context(), t, st, end.ID)
	stop()
	if _, err := repriseetcd.Open(t.Context(), as("nothing"), repriseetcd.Config{Prefix: "mine/"}); !errors.Is(err, store.ErrMisconfigured) {
		t.Errorf("a user without a role: %v, want ErrMisconfigured", err)
	}
}

// Newer servers show members and alarms only to root.
func TestCheckNeedsNoRoot(t *testing.T) {
	t.Parallel()
	addrs := etcdcluster.Start(t, 1).Addrs()
	for method, want := range map[string]int{"MemberList": 0, "Alarm": 1, "Status": 1} { // it has one member
		refused := failing{method: method, err: status.Error(codes.PermissionDenied, "etcdserver: permission denied")}
		st, err := repriseetcd.Open(t.Context(), refused.connect(t, addrs...), repriseetcd.Config{Prefix: etcdcluster.Prefix()})
		if err != nil {
			t.Errorf("without %s: %v", method, err)
			continue
		}
		if findings, err := st.Check(t.Context()); err != nil || len(findings) != want {
			t.Errorf("without %s: %+v, %v", method, findings, err)
		}
	}
}

// watch watches a record. A busy machine may confirm that later than the store waits.
func watch(ctx context.Context, t *testing.T, st *repriseetcd.Store, id store.ID) (changed <-chan struct{}, stop func()) {
	t.Helper()
	etcdcluster.Eventually(t, func() (err error) { //nolint:contextcheck // it polls while the test lasts
		changed, stop, err = st.Watch(ctx, id)
		return err
	})
	return changed, stop
}

func TestWatchEndsWithItsClient(t *testing.T) {
	t.Parallel()
	client, err := clientv3.New(clientv3.Config{Endpoints: etcdcluster.Start(t, 1).Addrs(), Logger: zap.NewNop()})
	labtest.Must(t, err)
	st, err := repriseetcd.New(client, repriseetcd.Config{Prefix: etcdcluster.Prefix()})
	labtest.Must(t, err)
	changed, stop := watch(t.Context(), t, st, store.ID{})
	defer stop()
	_ = client.Close()
	for range changed {
		continue // until it is closed
	}
	if _, _, err := st.Watch(t.Context(), store.ID{}); !errors.Is(err, store.ErrUnavailable) && !errors.Is(err, store.ErrUnknown) {
		t.Errorf("watch over a closed client: %v", err)
	}
}
