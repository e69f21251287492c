package pipeline

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/reprise-go/reprise/store/internal/batching"
	"github.com/reprise-go/reprise/store/redis/internal/fakeserver"
)

func TestLimitsFollowTheOptionsOfTheClient(t *testing.T) {
	t.Parallel()
	defaults := redis.NewClient(&redis.Options{})
	t.Cleanup(func() { _ = defaults.Close() })
	o := defaults.Options()
	for _, c := range []struct {
		name string
		o    redis.Options
		want limits
	}{
		{"the defaults", redis.Options{}, limits{read: o.ReadTimeout, write: o.WriteTimeout, idle: idleAfter}},
		{"shorter ones", redis.Options{ReadTimeout: 1, WriteTimeout: 2, ConnMaxIdleTime: 4, ConnMaxLifetime: 5}, limits{read: 1, write: 2, idle: 4, lifetime: 5}},
		{"longer ones", redis.Options{ReadTimeout: time.Hour, WriteTimeout: time.Hour, ConnMaxIdleTime: time.Hour}, limits{read: time.Hour, write: time.Hour, idle: idleAfter}},
		{"none", redis.Options{ReadTimeout: -1, WriteTimeout: -1, ConnMaxIdleTime: -1}, limits{read: AnswerWithin, write: AnswerWithin, idle: idleAfter}},
		{"none for writes", redis.Options{ReadTimeout: time.Second, WriteTimeout: -1}, limits{read: time.Second, write: time.Second, idle: idleAfter}},
	} {
		client := redis.NewClient(&c.o)
		t.Cleanup(func() { _ = client.Close() })
		if got := limitsOf(client.Options()); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

// A server that owes an answer is given the read timeout from the write of the oldest
// call, or from the last byte that it sent, and a connection without calls the idle time.
func TestConnectionIsGivenUpInTime(t *testing.T) {
	t.Parallel()
	now := time.Now()
	ago := func(d time.Duration) written { return written{at: now.Add(-d)} }
	for _, c := range []struct {
		name      string
		reading   []written
		answered  int
		written   []written
		lastWrite time.Duration // ago
		heard     time.Duration // ago, or zero for never
		arrived   bool
		want      error
		next      time.Duration // from now, of the next look
	}{
		{"the oldest has waited too long", []written{ago(4 * time.Second)}, 0, nil, 0, 0, false, errSilence, 0},
		{"the oldest of two has", []written{ago(4 * time.Second)}, 0, []written{ago(0)}, 0, 0, false, errSilence, 0},
		{"one that is not being read has", nil, 0, []written{ago(4 * time.Second), ago(0)}, 0, 0, false, errSilence, 0},
		{"it has not waited too long", []written{ago(4*time.Second - 1)}, 0, nil, 0, 0, false, nil, time.Second},
		{"something arrived meanwhile", []written{ago(time.Minute)}, 0, nil, 0, 0, true, nil, time.Second},
		{"something arrived not long ago", []written{ago(time.Minute)}, 0, nil, 0, 4*time.Second - 1, false, nil, time.Second},
		{"what arrived was too long ago", []written{ago(time.Minute)}, 0, nil, 0, 4 * time.Second, false, errSilence, 0},
		{"the oldest was answered", []written{ago(time.Minute)}, 1, []written{ago(0)}, 0, 0, false, nil, time.Second},
		{"nothing is owed", []written{ago(time.Minute)}, 1, nil, 10 * time.Second, 0, false, nil, 20 * time.Second},
		{"it is idle", nil, 0, nil, 30 * time.Second, 0, false, errIdle, 0},
		{"it is not idle for long enough", nil, 0, nil, 30*time.Second - 1, 0, false, nil, 1},
	} {
		r := &recorder{}
		conn := &conn{
			Conn: r, limits: limits{read: 4 * time.Second, idle: 30 * time.Second}, lastWrite: now.Add(-c.lastWrite),
			reading: c.reading, answered: c.answered, written: c.written, arrived: c.arrived,
		}
		if c.heard > 0 {
			conn.heard = now.Add(-c.heard)
		}
		if err := conn.tick(now); !errors.Is(err, c.want) || c.want == nil && err != nil {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
		if conn.arrived || conn.ended != (c.want == errIdle) || c.arrived && !conn.heard.Equal(now) { //nolint:errorlint // of the table
			t.Errorf("%s: arrived %v, heard %v, ended %v", c.name, conn.arrived, conn.heard, conn.ended)
		}
		if c.want == nil && (!r.reads.Equal(now.Add(c.next)) || !conn.readTill.Equal(r.reads)) {
			t.Errorf("%s: looks again after %v, want %v", c.name, r.reads.Sub(now), c.next)
		}
	}
}

// A reply that takes longer than the read timeout is no silence while bytes of it arrive,
// and neither do calls behind it fail.
func TestReplyThatIsStillArrivingIsNoSilence(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const read, pieces, size = time.Second, 40, 1000
		here, there := net.Pipe()
		c, err := newConn(here, limits{read: read, write: read, idle: time.Minute}, func() {})
		if err != nil {
			t.Fatal(err)
		}
		q := batching.New(batching.Config[queued]{Later: true, Send: func(_ context.Context, batch []batching.Sent[queued]) {
			c.write(time.Now(), batch)
		}})
		var reading sync.WaitGroup
		reading.Go(func() { _ = c.read() })
		reading.Go(func() { // the server: it takes 0.9 read timeouts for each piece
			_, _ = there.Read(make([]byte, 100))
			protocol := fakeserver.Bulk(long(pieces*size)) + fakeserver.Bulk("behind it")
			for len(protocol) > 0 {
				time.Sleep(read * 9 / 10) //nolint:forbidigo // by the clock of the bubble
				n := min(size, len(protocol))
				_, _ = there.Write([]byte(protocol[:n]))
				protocol = protocol[n:]
			}
		})
		var calling sync.WaitGroup
		for _, name := range []string{"long", "behind it"} {
			calling.Go(func() {
				call := q.Call()
				defer call.Release()
				call.Value.out, call.Value.want = []byte("x"), "$"
				if err := q.Do(t.Context(), call); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			})
			synctest.Wait()
			if name == "long" {
				go func() { _, _ = there.Read(make([]byte, 100)) }()
			}
		}
		calling.Wait()
		c.end()
		reading.Wait()
	})
}

// A deadline is moved when it has to be: at once to an earlier look for an answer, and
// for a server that does not read only every now and then.
func TestWritesMoveTheDeadlines(t *testing.T) {
	t.Parallel()
	now := time.Now()
	r := &recorder{takes: -1}
	conn := &conn{Conn: r, limits: limits{read: 4 * time.Second, write: 8 * time.Second, idle: time.Minute}}
	if tick := conn.limits.tick(); tick <= 0 || tick > conn.limits.read/2 {
		t.Errorf("it looks every %v for an answer that is due in %v", tick, conn.limits.read)
	}
	conn.readTill = now.Add(time.Minute) // idle
	first := now.Add(10 * time.Second)
	for _, c := range []struct {
		after time.Duration
		reads time.Time
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
func TestBrokenWriteLeavesTheRestUnsent(t *testing.T) {
	t.Parallel()
	for takes, unsentCalls := range map[int]int{0: 3, 1: 2, 3: 2, 4: 1, 7: 0, 9: 0} {
		r := &recorder{takes: takes}
		conn := &conn{Conn: r, limits: limits{read: time.Second, write: time.Second}}
		busy, free, over := make(chan struct{}), make(chan struct{}), make(chan struct{})
		first := true
		q := batching.New(batching.Config[queued]{Later: true, Send: func(_ context.Context, batch []batching.Sent[queued]) {
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
			if errors.Is(err, ErrUnsent) {
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
func TestRetiredConnectionTakesNoBatch(t *testing.T) {
	t.Parallel()
	conn := &conn{Conn: &recorder{takes: -1}, limits: limits{read: time.Second, write: time.Second}}
	conn.inFlight.Store(1)
	conn.retire()
	if conn.ended {
		t.Error("it ended before the answer that is on its way")
	}
	q := batching.New(batching.Config[queued]{Later: true, Send: func(_ context.Context, batch []batching.Sent[queued]) {
		conn.write(time.Now(), batch)
	}})
	call := q.Call()
	defer call.Release()
	if err := q.Do(t.Context(), call); !errors.Is(err, errNotTaken) || len(conn.written) > 0 {
		t.Errorf("a call on it: %v, and %d were written", err, len(conn.written))
	}
}
