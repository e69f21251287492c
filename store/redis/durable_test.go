package repriseredis

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/internal/batching"
	"github.com/reprise-go/reprise/store/redis/internal/record"
)

// confirming returns a server that answers a script as the test says, and a wait
// with confirm.
func confirming(t *testing.T, script, confirm string) *fake {
	t.Helper()
	return newFake(t, func(_, _ int, command []string) string {
		if strings.HasPrefix(strings.ToLower(command[0]), "wait") {
			return confirm
		}
		return script
	})
}

// A write and its wait are on one connection, and what too few confirm is not replicated.
func TestAWriteWaitsOnItsOwnConnection(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		level   Durability
		confirm string
		sent    string // the wait; where it is refused, only the error counts
	}{
		{"without a wait", Async(), "", "1 set"},
		{"two of two", Acked(2), ":2\r\n", "1 set, 1 evalsha, 1 wait 2 1000"},
		{"on disk", Fsynced(0), "*2\r\n:1\r\n:0\r\n", "1 set, 1 evalsha, 1 waitaof 1 0 1000"},
		{"on disk here and there", Fsynced(1), "*2\r\n:1\r\n:1\r\n", "1 set, 1 evalsha, 1 waitaof 1 1 1000"},
		{"none", Acked(1), ":0\r\n", ""},
		{"one of two", Acked(2), ":1\r\n", ""},
		{"not on disk", Fsynced(0), "*2\r\n:0\r\n:0\r\n", ""},
		{"on disk here only", Fsynced(1), "*2\r\n:1\r\n:0\r\n", ""},
		{"on disk there only", Fsynced(1), "*2\r\n:0\r\n:1\r\n", ""},
		{"the connection broke", Acked(1), cut, ""},
		{"demoted meanwhile", Acked(1), "-UNBLOCKED force unblock from blocking operation\r\n", ""},
		{"an answer that is none", Acked(1), bulk("1"), ""},
		{"no permission", Acked(1), "-NOPERM this user has no permissions to run the 'wait' command\r\n", ""},
		{"too old for it", Fsynced(0), "-ERR unknown command 'waitaof'\r\n", ""},
		{"no file", Fsynced(0), "-ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled.\r\n", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := confirming(t, claimed, c.confirm)
			got, err := claim(t, newStore(t, f, Config{Durability: c.level}))
			if refused := c.sent == ""; refused != errors.Is(err, store.ErrNotReplicated) || refused != (err != nil) || refused != (got.Outcome == 0) {
				t.Errorf("claim = %+v, %v; want it refused: %v", got, err, refused)
			}
			if c.sent != "" && f.seen() != c.sent {
				t.Errorf("sent %q, want %q", f.seen(), c.sent)
			}
		})
	}
}

// Every write of an attempt or an operator counts when it is confirmed, and only then.
func TestEveryWriteOfAnAttemptIsConfirmed(t *testing.T) {
	t.Parallel()
	renewals := []store.RenewRequest{{Owner: store.Owner{1}, Lease: time.Second}}
	for _, c := range []struct {
		name   string
		first  string // what is sent before
		answer string
		write  func(context.Context, *Store) error
	}{
		{"claim by the script", "1 evalsha, ", claimed, func(ctx context.Context, s *Store) error {
			_, err := s.Claim(ctx, store.ClaimRequest{Owner: store.Owner{1}, Lease: time.Second, Policy: store.Policy{Retention: time.Hour}, Waiting: true})
			return err
		}},
		{"complete", "", bulk("D"), func(ctx context.Context, s *Store) error {
			return s.Complete(ctx, store.CompleteRequest{Owner: store.Owner{1}, Policy: store.Policy{Retention: time.Hour}})
		}},
		{"renew", "", bulk("W"), func(ctx context.Context, s *Store) error {
			_, err := s.Renew(ctx, renewals)
			return err
		}},
		{"resolve", "", bulk("W"), func(ctx context.Context, s *Store) error {
			return s.Resolve(ctx, store.ID{}, store.Resolution{Fence: 1, Forget: true})
		}},
	} {
		for _, config := range []Config{{}, {NoCombining: true}} {
			config.Durability = Acked(1)
			for confirm, want := range map[string]string{":0\r\n": "0 of 1 replicas confirmed the write in time", ":1\r\n": ""} {
				f := confirming(t, c.answer, confirm)
				s := over(t, newClient(t, f), config)
				err := c.write(t.Context(), s)
				if errors.Is(err, store.ErrNotReplicated) != (want != "") || err != nil && !strings.Contains(err.Error(), want) {
					t.Errorf("%s, of which %q replicas know: %v, want %q", c.name, confirm, err, want)
				}
				sent := strings.TrimPrefix(f.seen(), c.first)
				if sent != "1 evalsha, 1 wait 1 1000" && (c.first == "" || sent != "2 evalsha, 2 wait 1 1000") {
					t.Errorf("%s: sent %q, want the write and its wait on one connection", c.name, sent)
				}
			}
		}
	}
}

// No confirmation is awaited for an answer without a write: a replica that is away delays
// no replay.
func TestReplaysAreNotConfirmed(t *testing.T) {
	t.Parallel()
	inProgress := string(recordOfClaim(store.Fingerprint{}))
	for _, c := range []struct {
		found, script string // the answers to the native claim and to the script
		want          store.Outcome
	}{
		{inProgress, "M", store.Mismatch},
		{inProgress, "L", store.Lapsed},
		{inProgress, "P\x00\x00\x00\x00\x00\x0f\x42\x40", store.InProgress},
		{inProgress, "=" + claimed[len("$21\r\n+"):len(claimed)-len("\r\n")], store.Claimed},
		{string(replayable("payload")), "", store.Completed},
		{string(recordOfClaim(store.Fingerprint{31: 1})), "", store.Mismatch},
	} {
		sent := "set, evalsha"
		if c.script == "" {
			sent = "set"
		}
		f := newFake(t, func(_, _ int, command []string) string {
			return bulk(map[string]string{"set": c.found, "evalsha": c.script}[command[0]])
		})
		if got, err := claim(t, newStore(t, f, Config{Durability: Acked(1)})); err != nil || got.Outcome != c.want {
			t.Errorf("claim = %+v, %v; want %v", got, err, c.want)
		}
		if f.sent() != sent {
			t.Errorf("sent %q, want %q and no wait", f.sent(), sent)
		}
	}
}

// A wait for ever, which zero would be, or past the end of the context leaves the caller
// without the answer that it was refused.
func TestTheWaitEndsBeforeTheContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if ms := Acked(1).command(ctx, time.Second).Args()[2]; ms.(int64) < 1 || ms.(int64) > 150 {
		t.Errorf("waits for %v ms of 200", ms)
	}
	ended, cancel := context.WithDeadline(t.Context(), time.Now())
	defer cancel()
	if ms := Acked(1).command(ended, time.Second).Args()[2]; ms.(int64) != 1 {
		t.Errorf("waits for %v ms of none, want 1", ms)
	}
}

// A replica that is away holds a connection for every write that waits for it. Half of
// the pool stays for replays; a write that gets no slot in time is not confirmed.
func TestWritesThatWaitLeaveConnectionsForReplays(t *testing.T) {
	t.Parallel()
	waiting := make(chan struct{}, 10)
	replay := bulk(string(replayable("payload")))
	f := newFake(t, func(_, _ int, command []string) string {
		switch {
		case command[0] == "wait":
			waiting <- struct{}{}
			return mute
		case strings.HasSuffix(command[1], "\x01}"):
			return replay
		default:
			return claimed
		}
	})
	client := newClient(t, f, func(o *redis.Options) { o.PoolSize, o.ReadTimeout = 2, time.Second })
	for _, config := range []Config{{}, {NoCombining: true}} {
		config.Durability, config.AckTimeout = Acked(1), 600*time.Millisecond
		s := over(t, client, config)
		claims := make(chan error, 2)
		go func() { _, err := claim(t, s); claims <- err }()
		<-waiting
		sent := strings.Count(f.seen(), " set")
		go func() { _, err := claim(t, s); claims <- err }()
		for strings.Count(f.seen(), " set") == sent {
			runtime.Gosched()
		}
		r := store.ClaimRequest{ID: store.ID{31: 1}, Owner: store.Owner{1}, Lease: time.Second, Policy: store.Policy{Retention: time.Hour}}
		if got, err := s.Claim(t.Context(), r); err != nil || got.Outcome != store.Completed {
			t.Errorf("replay = %v, %v", got.Outcome, err)
		}
		if len(claims) > 0 {
			t.Error("the replay has waited for a claim")
		}
		for range 2 {
			if err := <-claims; !errors.Is(err, store.ErrNotReplicated) {
				t.Errorf("claim: %v, want ErrNotReplicated", err)
			}
		}
	}
}

// A tick of renewals is a pipeline of its own, and confirmed as such: it does not stand
// behind the writes that wait for a replica, or leases would end under handlers that run.
func TestRenewalsPassWritesThatWait(t *testing.T) {
	t.Parallel()
	waiting, renews, confirm := make(chan struct{}, 4), map[int]bool{}, ":0\r\n"
	f := newFake(t, func(conn, _ int, command []string) string {
		switch {
		case command[0] == "wait" && renews[conn]:
			defer func() { confirm = ":1\r\n" }()
			return confirm
		case command[0] == "wait":
			waiting <- struct{}{}
			return mute
		case command[1] == record.RenewScript.Digest:
			renews[conn] = true
			return bulk("W")
		default:
			return bulk("D")
		}
	})
	client := newClient(t, f, func(o *redis.Options) { o.PoolSize, o.ReadTimeout = 4, time.Minute })
	s := over(t, client, Config{Durability: Acked(1), AckTimeout: 10 * time.Second})
	var ends sync.WaitGroup
	for i := range 4 {
		ends.Go(func() {
			_ = s.Complete(t.Context(), store.CompleteRequest{
				ID: store.ID{31: byte(i)}, Owner: store.Owner{1}, Policy: store.Policy{Retention: time.Hour}, Payload: make([]byte, 300<<10), Attempt: 1, Fence: 1,
			})
		})
	}
	<-waiting
	<-waiting // half of the pool, which is as many as may
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for _, want := range []error{store.ErrNotReplicated, nil} {
		_, err := s.Renew(ctx, []store.RenewRequest{{Owner: store.Owner{1}, Lease: time.Minute}, {ID: store.ID{1}, Owner: store.Owner{1}, Lease: time.Minute}})
		if !errors.Is(err, want) {
			t.Errorf("renewed, %v, want %v", err, want)
		}
	}
	f.Stop()
	ends.Wait()
}

// A hook of the client that panics confirms nothing, panics in the calls of its batch
// only, as it does in one that is sent alone, and keeps neither a lane nor a connection.
func TestAPanicConfirmsNothing(t *testing.T) {
	t.Parallel()
	for _, before := range []bool{false, true} {
		f := confirming(t, bulk("D"), ":1\r\n")
		client := newClient(t, f, func(o *redis.Options) { o.PoolSize = 1 })
		hook := new(pipelines)
		panics := func(_ context.Context, calls int) {
			if calls > 0 {
				panic("hook")
			}
		}
		if before {
			hook.before = panics
		} else {
			hook.after = panics
		}
		client.AddHook(hook)
		s := over(t, client, Config{Durability: Acked(1)})
		complete := func() (p any) {
			defer func() { p = recover() }()
			return s.Complete(t.Context(), store.CompleteRequest{Owner: store.Owner{1}, Policy: store.Policy{Retention: time.Hour}})
		}
		for range 3 {
			if p, panicked := complete().(*batching.PanicError); !panicked || p.Value != "hook" {
				t.Errorf("complete: %v, want the panic of the hook", p)
			}
		}
		if stats := client.PoolStats(); stats.TotalConns != stats.IdleConns {
			t.Errorf("%d of %d connections are lost", stats.TotalConns-stats.IdleConns, stats.TotalConns)
		}
		if err := s.Release(t.Context(), store.ID{}, store.Owner{1}); err == nil {
			t.Error("a release was answered D")
		}
	}
}
