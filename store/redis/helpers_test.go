package repriseredis

import (
	"context"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/redis/internal/record"
)

// claimed is the answer of a claim that was granted: attempt 1, and, where a script was
// asked, fence 7 and one second.
var claimed = bulk("+\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x07\x00\x00\x00\x00\x00\x0f\x42\x40")

// inspected is the view of a completed record with fence 1.
var inspected = bulk("R\x03" + strings.Repeat("\x00", 11) + "\x01" + strings.Repeat("\x00", 58+32))

// newClient returns a client of f that dials once for each attempt, so that a dead server
// is noticed quickly.
func newClient(tb testing.TB, f *fake, change ...func(*redis.Options)) *redis.Client {
	tb.Helper()
	o := &redis.Options{Addr: f.Addr, Protocol: 2, DisableIdentity: true, ContextTimeoutEnabled: true, DialerRetries: 1}
	setPipelinePool(o, -1)
	for _, f := range change {
		f(o)
	}
	client := redis.NewClient(o)
	tb.Cleanup(func() { _ = client.Close() })
	return client
}

// setPipelinePool sets the size of the pool for pipelines, and reports whether this
// release of go-redis has one.
func setPipelinePool(o *redis.Options, size int64) bool {
	field := reflect.ValueOf(o).Elem().FieldByName("PipelinePoolSize")
	if field.IsValid() {
		field.SetInt(size)
	}
	return field.IsValid()
}

// over returns a store over a client, with the prefix of the tests.
func over(tb testing.TB, client redis.UniversalClient, c Config) *Store {
	tb.Helper()
	c.Prefix = servicePrefix
	s, err := New(client, c)
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

// newStore returns a store over f that sends every call alone.
func newStore(tb testing.TB, f *fake, c Config) *Store {
	tb.Helper()
	c.NoCombining = true
	return over(tb, newClient(tb, f), c)
}

// claim makes a claim that is in order, and has a minute.
func claim(tb testing.TB, s *Store) (store.ClaimResult, error) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), time.Minute)
	defer cancel()
	return s.Claim(ctx, store.ClaimRequest{Owner: store.Owner{1}, Lease: time.Minute, Policy: store.Policy{Retention: time.Hour}})
}

// recordOfClaim returns the record of another owner's first attempt.
func recordOfClaim(fingerprint store.Fingerprint) []byte {
	return record.AppendClaimed(nil, &store.ClaimRequest{Owner: store.Owner{2}, Fingerprint: fingerprint, Lease: time.Second, Policy: store.Policy{Retention: time.Hour}})
}

// replayable returns the record of a completed operation.
func replayable(payload string) []byte {
	r := store.CompleteRequest{Owner: store.Owner{2}, Policy: store.Policy{Retention: time.Hour}, Payload: []byte(payload), Attempt: 1}
	return append(record.AppendCompleted(nil, &r), payload...)
}

// newClusterStore returns a store that sends every call alone, over a cluster whose nodes
// have equal shares of the slots.
func newClusterStore(t *testing.T, addrs ...string) *Store {
	t.Helper()
	client := redis.NewClusterClient(&redis.ClusterOptions{
		Addrs: addrs, Protocol: 2, DisableIdentity: true, ContextTimeoutEnabled: true,
		ClusterSlots: func(context.Context) (slots []redis.ClusterSlot, _ error) {
			for i, addr := range addrs {
				first, next := i*16384/len(addrs), (i+1)*16384/len(addrs)
				slots = append(slots, redis.ClusterSlot{Start: first, End: next - 1, Nodes: []redis.ClusterNode{{Addr: addr}}})
			}
			return slots, nil
		},
	})
	t.Cleanup(func() { _ = client.Close() })
	s := over(t, client, Config{NoCombining: true})
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// eventually polls for up to a minute.
func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !done(); time.Sleep(time.Millisecond) { //nolint:forbidigo // polls
		if time.Now().After(deadline) {
			t.Fatalf("not within a minute: %s", what)
		}
	}
}

// listening returns a client of f, and listeners that wait for it as long as it takes.
func listening(t *testing.T, f *fake) (*redis.Client, *listeners) {
	t.Helper()
	s := &listeners{timeout: time.Minute, byServer: map[*redis.Client]*listener{}}
	t.Cleanup(s.close)
	return newClient(t, f), s
}
