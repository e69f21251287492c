package repriseredis

import (
	"bufio"
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/internal/batching"
)

// recorder is a connection that notes its deadlines, and takes only part of a write.
type recorder struct {
	net.Conn
	takes       int // bytes of a write; negative: all
	reads, ends time.Time
	closed      bool
}

func (r *recorder) SetReadDeadline(at time.Time) error  { r.reads = at; return nil }
func (r *recorder) SetWriteDeadline(at time.Time) error { r.ends = at; return nil }
func (r *recorder) Close() error                        { r.closed = true; return nil }

func (r *recorder) Write(p []byte) (int, error) {
	if r.takes < 0 || len(p) <= r.takes {
		return len(p), nil
	}
	return r.takes, errors.New("cut")
}

// A server that owes an answer is given the read timeout from the write of the oldest
// call, or from its last answer, and a connection that nobody uses the idle time.
func TestWhenAConnectionIsGivenUp(t *testing.T) {
	t.Parallel()
	now := time.Now()
	limits := pipelineLimits{read: 4 * time.Second, idle: 30 * time.Second}
	ago := func(d time.Duration) writtenCall { return writtenCall{at: now.Add(-d)} }
	for _, c := range []struct {
		name      string
		reading   []writtenCall
		answered  int
		written   []writtenCall
		lastWrite time.Duration // ago
		progress  bool
		want      error
		next      time.Duration // from now, of the next look
	}{
		{"the oldest has waited too long", []writtenCall{ago(4 * time.Second)}, 0, nil, 0, false, errSilence, 0},
		{"the oldest of two has", []writtenCall{ago(4 * time.Second)}, 0, []writtenCall{ago(0)}, 0, false, errSilence, 0},
		{"one that nobody reads has", nil, 0, []writtenCall{ago(4 * time.Second), ago(0)}, 0, false, errSilence, 0},
		{"it has not waited too long", []writtenCall{ago(4*time.Second - 1)}, 0, nil, 0, false, nil, time.Second},
		{"something else was answered meanwhile", []writtenCall{ago(time.Minute)}, 0, nil, 0, true, nil, time.Second},
		{"that was answered", []writtenCall{ago(time.Minute)}, 1, []writtenCall{ago(0)}, 0, false, nil, time.Second},
		{"nothing is owed", []writtenCall{ago(time.Minute)}, 1, nil, 10 * time.Second, false, nil, 20 * time.Second},
		{"nobody uses it", nil, 0, nil, 30 * time.Second, false, errIdle, 0},
		{"somebody used it", nil, 0, nil, 30*time.Second - 1, false, nil, 1},
	} {
		r := &recorder{}
		conn := &pipelineConn{
			Conn: r, limits: limits, lastWrite: now.Add(-c.lastWrite),
			reading: c.reading, answered: c.answered, written: c.written, progress: c.progress,
		}
		if err := conn.tick(now); !errors.Is(err, c.want) || c.want == nil && err != nil {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
		if conn.progress || conn.ended != (c.want == errIdle) { //nolint:errorlint // of the table
			t.Errorf("%s: progress %v, ended %v", c.name, conn.progress, conn.ended)
		}
		if c.want == nil && (!r.reads.Equal(now.Add(c.next)) || !conn.readTill.Equal(r.reads)) {
			t.Errorf("%s: looks again after %v, want %v", c.name, r.reads.Sub(now), c.next)
		}
	}
}

// A deadline is moved when it has to be: at once to an earlier look for an answer, and
// for a server that does not read only every now and then.
func TestDeadlinesOfWrites(t *testing.T) {
	t.Parallel()
	now := time.Now()
	r := &recorder{takes: -1}
	conn := &pipelineConn{Conn: r, limits: pipelineLimits{read: 4 * time.Second, write: 8 * time.Second, idle: time.Minute}}
	if tick := conn.limits.tick(); tick <= 0 || tick > conn.limits.read/2 {
		t.Errorf("it looks every %v for an answer that is due in %v", tick, conn.limits.read)
	}
	conn.readTill = now.Add(time.Minute) // idle
	first := now.Add(10 * time.Second)
	for _, c := range []struct {
		after time.Duration
		reads time.Time // zero: as before
		ends  time.Time
	}{
		{0, now.Add(time.Second), first},
		{500 * time.Millisecond, now.Add(time.Second), first},
		{2 * time.Second, now.Add(time.Second), first},
		{2*time.Second + 1, now.Add(time.Second), now.Add(12*time.Second + 1)},
	} {
		conn.write(now.Add(c.after), nil)
		if !r.reads.Equal(c.reads) || !r.ends.Equal(c.ends) {
			t.Errorf("after %v: reads until %v, writes until %v; want %v, %v",
				c.after, r.reads.Sub(now), r.ends.Sub(now), c.reads.Sub(now), c.ends.Sub(now))
		}
		if !conn.lastWrite.Equal(now.Add(c.after)) {
			t.Errorf("after %v: the last write was %v", c.after, conn.lastWrite.Sub(now))
		}
	}
}

// Of a write that breaks off, the calls of which no byte went out were not sent, and the
// others may have been.
func TestAWriteThatBreaksOff(t *testing.T) {
	t.Parallel()
	for takes, unsentCalls := range map[int]int{0: 3, 1: 2, 3: 2, 4: 1, 7: 0, 9: 0} {
		r := &recorder{takes: takes}
		conn := &pipelineConn{Conn: r, limits: pipelineLimits{read: time.Second, write: time.Second}}
		busy, free, over := make(chan struct{}), make(chan struct{}), make(chan struct{})
		first := true
		q := batching.New(batching.Config[pipelineCall]{Later: true, Send: func(_ context.Context, batch []batching.Sent[pipelineCall]) {
			if first {
				first = false
				close(busy)
				<-free
				batch[0].Finish(nil)
				return
			}
			conn.write(time.Now(), batch)
			conn.failRest(errors.New("it is over"))
			close(over)
		}})
		do := func() error {
			call := q.Call()
			defer call.Release()
			call.Value.out = []byte("abc")
			return q.Do(t.Context(), call)
		}
		var calling sync.WaitGroup
		calling.Go(func() { _ = do() })
		<-busy
		errs := make(chan error, 3)
		for range 3 {
			calling.Go(func() { errs <- do() })
		}
		for q.Waiting() < 3 {
			time.Sleep(time.Millisecond) //nolint:forbidigo // polls
		}
		close(free)
		calling.Wait()
		<-over
		n := 0
		for range 3 {
			err := <-errs
			if takes == 9 && !errors.Is(err, errNoAnswer) {
				t.Errorf("all was sent: %v", err)
			}
			if errors.As(err, new(unsent)) {
				n++
			} else if !errors.Is(err, errNoAnswer) {
				t.Errorf("%d bytes were sent: %v", takes, err)
			}
		}
		if n != unsentCalls || r.closed != (takes < 9) {
			t.Errorf("of three calls of 3 bytes, %d bytes were sent: %d were unsent, closed %v; want %d", takes, n, r.closed, unsentCalls)
		}
		if left := conn.inFlight.Load(); left != 0 {
			t.Errorf("%d calls are in flight of a connection that is over", left)
		}
	}
}

// A connection that was replaced takes no further batch, and ends with its last answer.
func TestAConnectionThatWasReplacedTakesNothing(t *testing.T) {
	t.Parallel()
	conn := &pipelineConn{Conn: &recorder{takes: -1}, limits: pipelineLimits{read: time.Second, write: time.Second}}
	conn.inFlight.Store(1)
	conn.retire()
	if conn.ended {
		t.Error("it ended before the answer that is on its way")
	}
	q := batching.New(batching.Config[pipelineCall]{Later: true, Send: func(_ context.Context, batch []batching.Sent[pipelineCall]) {
		conn.write(time.Now(), batch)
	}})
	call := q.Call()
	defer call.Release()
	if err := q.Do(t.Context(), call); !errors.Is(err, errNoPipeline) || len(conn.written) > 0 {
		t.Errorf("a call on it: %v, and %d were written", err, len(conn.written))
	}
}

// connOf returns the connection of a store's pipeline.
func connOf(s *Store) *pipelineConn { return s.pipelines.single.conn.Load() }

// isEnded reports whether nothing is written on a connection any more.
func (c *pipelineConn) isEnded() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ended
}

// eventually polls for ten seconds.
func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !done(); time.Sleep(time.Millisecond) { //nolint:forbidigo // polls
		if time.Now().After(deadline) {
			t.Fatalf("not within ten seconds: %s", what)
		}
	}
}

// Only an error that another connection would not give ends a connection, and then with
// its last answer.
func TestWhichErrorsEndAConnection(t *testing.T) {
	t.Parallel()
	for answer, ends := range map[string]bool{
		"-BUSY Redis is busy running a script.\r\n": false,
		bulk("READONLY "): false,
		"-READONLY You can't write against a replica.\r\n": true,
		"-NOAUTH Authentication required.\r\n":             true,
	} {
		var s *Store
		f := newFake(t, func(_, _ int, _ []string) string { return bulk("W") })
		s, _ = newPipelined(t, f, Config{})
		conn := connOf(s)
		number := lastConnection(f)
		f.mu.Lock()
		f.answer = func(at, _ int, _ []string) string {
			if int64(at) == number {
				return answer
			}
			return bulk("W")
		}
		f.mu.Unlock()
		_ = s.Release(t.Context(), store.ID{}, store.Owner{1})
		_ = s.Release(t.Context(), store.ID{}, store.Owner{1}) // one a second goes through the client
		if ends {
			eventually(t, "the connection ends", conn.isEnded)
		} else if conn.isEnded() || connOf(s) != conn {
			t.Errorf("%q ended the connection", answer)
		}
	}
}

// What a server pushes between answers is skipped, and what nobody asked for ends the
// connection.
func TestWhatNobodyAskedFor(t *testing.T) {
	t.Parallel()
	for extra, ends := range map[string]bool{
		">2\r\n+invalidate\r\n:1\r\n": false,
		":1\r\n":                      true,
		bulk("W"):                     true,
		">1\r\nwhat\r\n":              true,
	} {
		f := newFake(t, func(_, _ int, _ []string) string { return bulk("W") })
		s, pipelined := newPipelined(t, f, Config{})
		conn, number := connOf(s), lastConnection(f)
		f.mu.Lock()
		f.answer = func(at, _ int, _ []string) string {
			if int64(at) == number {
				return bulk("W") + extra
			}
			return bulk("W")
		}
		f.mu.Unlock()
		for before := pipelined.Load(); pipelined.Load() < before+3; {
			if err := s.Release(t.Context(), store.ID{}, store.Owner{1}); err != nil {
				t.Fatalf("after %q: %v", extra, err)
			}
		}
		if ends {
			eventually(t, "the connection ends", conn.isEnded)
		} else if conn.isEnded() || connOf(s) != conn {
			t.Errorf("%q ended the connection", extra)
		}
	}
}

// A connection lasts while it is used now and then, and ends when nobody uses it: then a
// cluster client may have dropped its node, so the pipeline is forgotten.
func TestAnIdleConnectionIsForgotten(t *testing.T) {
	t.Parallel()
	f := newFake(t, func(_, _ int, _ []string) string { return bulk("W") })
	const idle = 400 * time.Millisecond
	s := newClusterStore(t, f.Addr, func(o *redis.Options) { o.ConnMaxIdleTime, o.ReadTimeout = idle, 100*time.Millisecond })
	release := func() {
		if err := s.Release(t.Context(), store.ID{}, store.Owner{1}); err != nil {
			t.Fatal(err)
		}
	}
	var n *nodePipeline
	eventually(t, "there is a connection", func() bool {
		release()
		s.pipelines.mu.Lock()
		defer s.pipelines.mu.Unlock()
		for _, of := range s.pipelines.nodes {
			n = of
		}
		return n != nil && n.conn.Load() != nil
	})
	conn := n.conn.Load()
	born := time.Now()
	eventually(t, "the connection is idle", conn.isEnded)
	if lasted := time.Since(born); lasted < idle/2 {
		t.Errorf("a connection that may be idle for %v ended after %v", idle, lasted)
	}
	eventually(t, "the pipeline is forgotten", func() bool {
		s.pipelines.mu.Lock()
		defer s.pipelines.mu.Unlock()
		return len(s.pipelines.nodes) == 0
	})
	release()
}

// A server that stops answering is noticed after the read timeout, also when the
// connection was idle before and looked for an answer seldom.
func TestASilentServerIsNoticed(t *testing.T) {
	t.Parallel()
	const read = 200 * time.Millisecond
	var muted sync.Map // connections
	f := newFake(t, func(conn, _ int, _ []string) string {
		if _, ok := muted.Load(int64(conn)); ok {
			return mute
		}
		return bulk("W")
	})
	s := newPipelinedOver(t, f, func(o *redis.Options) { o.ReadTimeout = read })
	conn := connOf(s)
	eventually(t, "the connection looks seldom", func() bool {
		conn.mu.Lock()
		defer conn.mu.Unlock()
		return time.Until(conn.readTill) > 10*time.Second
	})
	muted.Store(lastConnection(f), true)
	start := time.Now()
	for range 2 { // one a second goes through the client
		_ = s.Release(t.Context(), store.ID{}, store.Owner{1})
	}
	eventually(t, "the connection ends", conn.isEnded)
	if took := time.Since(start); took < read || took > 5*time.Second {
		t.Errorf("noticed after %v, want %v or a little more", took, read)
	}
}

// newPipelinedOver is newPipelined with a client of the test's.
func newPipelinedOver(t *testing.T, f *fake, change func(*redis.Options)) *Store {
	t.Helper()
	o := &redis.Options{Addr: f.Addr, Protocol: 2, DisableIdentity: true, ContextTimeoutEnabled: true, DialerRetries: 1}
	change(o)
	client := redis.NewClient(o)
	t.Cleanup(func() { _ = client.Close() })
	s, err := New(client, Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	eventually(t, "a call is pipelined", func() bool {
		if err := s.Release(t.Context(), store.ID{}, store.Owner{1}); err != nil {
			t.Fatal(err)
		}
		conn := connOf(s)
		return conn != nil && !conn.idleSince().Equal(conn.born)
	})
	return s
}

// idleSince returns the time of the last write.
func (c *pipelineConn) idleSince() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lastWrite
}

// A caller waits for its answer no longer than its context lasts.
func TestACallLeavesItsPipelineInTime(t *testing.T) {
	t.Parallel()
	var muted sync.Map // connections
	f := newFake(t, func(conn, _ int, _ []string) string {
		if _, ok := muted.Load(int64(conn)); ok {
			return mute
		}
		return bulk("W")
	})
	s := newPipelinedOver(t, f, func(o *redis.Options) { o.ReadTimeout = 20 * time.Second })
	t.Cleanup(f.Stop) // before the store is closed, which would wait for answers
	muted.Store(lastConnection(f), true)
	conn := connOf(s)
	for range 3 { // one a second goes through the client
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		start := time.Now()
		err := s.Release(ctx, store.ID{}, store.Owner{1})
		cancel()
		if took := time.Since(start); took > 10*time.Second || err != nil && !errors.Is(err, store.ErrUnknown) {
			t.Errorf("a call of 50 ms took %v: %v", took, err)
		}
	}
	if n := conn.inFlight.Load(); n == 0 {
		t.Error("no call was pipelined")
	}
}

// A string that comes in pieces ends where it ends, also when the next reply is there.
func TestALongReplyEndsWhereItEnds(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("y", 100)
	in := bufio.NewReaderSize(strings.NewReader(bulk(text)+":1\r\n:2\r\n"), 64)
	if r, err := readReply(in); err != nil || r.text != text {
		t.Errorf("reads %d bytes, %v", len(r.text), err)
	}
	var next []int64
	for range 2 {
		r, err := readReply(in)
		if err != nil {
			t.Fatal(err)
		}
		next = append(next, r.number)
	}
	if !slices.Equal(next, []int64{1, 2}) {
		t.Errorf("then %v", next)
	}
}
