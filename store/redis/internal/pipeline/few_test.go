package pipeline

import (
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/reprise-go/reprise/store/redis/internal/fakeserver"
)

// viaClient makes a call while the client would run direct for it, and reports whether it
// went through the client.
func viaClient(t *testing.T, all *Pipelines, node *redis.Client, direct func()) bool {
	t.Helper()
	called := false
	_, pipelined, err := all.Do(t.Context(), node, text(""), func() error {
		called = true
		direct()
		return nil
	})
	if err != nil || called == pipelined {
		t.Errorf("pipelined %v, through the client %v, %v", pipelined, called, err)
	}
	return called
}

// connected returns the client of a server with a connected pipeline, none of whose calls
// is the one a second that goes through the client.
func connected(t *testing.T, s *server, all func(*redis.Client) *Pipelines, pool int) (*Pipelines, *redis.Client) {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: s.Addr, Protocol: 2, DisableIdentity: true, PoolSize: pool})
	t.Cleanup(func() { _ = client.Close() })
	a := all(client)
	t.Cleanup(a.Close)
	p := a.of(client)
	p.sampled = time.Now().Add(time.Hour)
	p.connect()
	eventually(t, "it is connected", func() bool { return p.conn.Load() != nil })
	return a, client
}

func ofOne(client *redis.Client) *Pipelines { return New(client) }

func nothing() {}

// The fifth call on its way to a server starts the pipeline, which keeps the calls until
// 64 in a row were few. Half of a small pool is fewer. After Close, none is pipelined.
func TestFewCallsGoThroughTheClient(t *testing.T) {
	t.Parallel()
	s := startServer(t, answering(fakeserver.Bulk("")))
	for _, c := range []struct{ pool, few int }{{100, 4}, {8, 4}, {7, 3}, {4, 2}, {2, 1}, {1, 0}} {
		all, client := connected(t, s, ofOne, c.pool)
		// depth calls are on their way through the client while the next one is made.
		var nest func(depth int)
		nest = func(depth int) {
			want := depth < c.few
			if got := viaClient(t, all, client, func() { nest(depth + 1) }); got != want {
				t.Errorf("a pool of %d, beside %d calls: through the client %v, want %v", c.pool, depth, got, want)
			}
		}
		nest(0)
		for n := range staysBusy + 1 {
			want := n == staysBusy && c.few > 0
			if got := viaClient(t, all, client, nothing); got != want {
				t.Errorf("a pool of %d, %d calls after the busy one: through the client %v, want %v", c.pool, n, got, want)
			}
		}
		all.Close()
		var ended func(depth int)
		ended = func(depth int) {
			if depth > c.few+1 {
				return
			}
			if !viaClient(t, all, client, func() { ended(depth + 1) }) {
				t.Errorf("a pool of %d, beside %d calls after the end: pipelined", c.pool, depth)
			}
		}
		ended(0)
	}
}

// Calls to one server of a cluster do not make those to another one many: each server has
// a connection and batches of its own.
func TestFewCallsAreCountedForEachServer(t *testing.T) {
	t.Parallel()
	s := startServer(t, answering(fakeserver.Bulk("")))
	all, _ := newCluster(t, s.Addr, func(*redis.Options) {})
	same := func(*redis.Client) *Pipelines { return all }
	_, one := connected(t, s, same, 10)
	_, other := connected(t, s, same, 10)
	viaClient(t, all, one, func() {
		viaClient(t, all, one, func() {
			viaClient(t, all, one, func() {
				viaClient(t, all, one, func() {
					if viaClient(t, all, one, nothing) {
						t.Error("a fifth call to the same server went through the client")
					}
					if !viaClient(t, all, other, nothing) {
						t.Error("a first call to another server was pipelined")
					}
				})
			})
		})
	})
}

// Options may rule pipelines out, as sentinels do: then every call goes through the
// client.
func TestCallsWithoutPipelinesGoThroughTheClient(t *testing.T) {
	t.Parallel()
	behind := redis.NewFailoverClient(&redis.FailoverOptions{MasterName: "m", SentinelAddrs: []string{"127.0.0.1:1"}})
	t.Cleanup(func() { _ = behind.Close() })
	all := New(behind)
	t.Cleanup(all.Close)
	var nest func(depth int)
	nest = func(depth int) {
		if depth < 10 && !viaClient(t, all, behind, func() { nest(depth + 1) }) {
			t.Errorf("beside %d calls: pipelined", depth)
		}
	}
	nest(0)
}

// answered is an error that a server answered.
type answered string

func (e answered) Error() string { return string(e) }

func (answered) RedisError() {}

// A pipeline connects once calls are not few and the server answered the client. It ends
// with the client.
func TestPipelineFollowsTheAnswersOfTheClient(t *testing.T) {
	t.Parallel()
	s := startServer(t, answering(fakeserver.Bulk("")))
	for _, c := range []struct {
		name         string
		pool         int
		err          error
		dials, again bool
	}{
		{"an answer", 1, nil, true, true},
		{"nil", 1, redis.Nil, true, true},
		{"an answer that refuses", 1, answered("BUSY Redis is busy running a script."), true, true},
		{"no answer", 1, errors.New("broken pipe"), false, true},
		{"a closed client", 1, redis.ErrClosed, false, false},
		{"few calls", 100, nil, false, true},
		{"few calls of a closed client", 100, redis.ErrClosed, false, false},
	} {
		client := redis.NewClient(&redis.Options{Addr: s.Addr, Protocol: 2, DisableIdentity: true, PoolSize: c.pool})
		t.Cleanup(func() { _ = client.Close() })
		all := New(client)
		t.Cleanup(all.Close)
		p := all.of(client)
		_, _, _ = all.Do(t.Context(), client, text(""), func() error { return c.err })
		p.mu.Lock()
		dials := p.dialing || p.conn.Load() != nil
		p.mu.Unlock()
		if dials != c.dials {
			t.Errorf("%s: dials %v, want %v", c.name, dials, c.dials)
		}
		if again := all.ctx.Err() == nil; again != c.again {
			t.Errorf("%s: goes on %v, want %v", c.name, again, c.again)
		}
	}
}
