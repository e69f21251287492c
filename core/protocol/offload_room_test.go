package protocol_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/store"
)

// wantNotApplied demands that a client is told that nothing was applied, and to come
// back.
func wantNotApplied(t *testing.T, w *httptest.ResponseRecorder) {
	t.Helper()
	if w.Code != 503 || problemCode(w) != protocol.CodeNotApplied || w.Header().Get("Retry-After") == "" {
		t.Errorf("answered %d %.200q, want 503 not-applied", w.Code, w.Body)
	}
}

// R35: where the effects commit with the response, a body that finds no room is one to
// retry, and a body that can never be kept is not.
func TestR35AtomicBodyIsRetryableOnlyIfItMayBeKeptLater(t *testing.T) {
	t.Parallel()
	body := large(6000)
	memory := protocol.Captured{Status: 201, Body: body}
	busy := offloadIn(t, atomically(memstore.New()), func(c *protocol.Config) { c.Offload.MaxBody, c.Offload.MaxSpool = 6000, 8000 })
	busy.run("first", func(rec *protocol.Recorder, h http.Header, x *protocol.Exchange) {
		writes(body, 500)(rec, h, x)
		wantNotApplied(t, busy.run("key", writes(body, 500)))
		if code := replyCode(t, busy.finish("memory", memory)); code != protocol.CodeNotApplied {
			t.Errorf("a body in memory gets %s", code)
		}
	})
	for _, key := range []string{"key", "memory"} {
		if w := busy.run(key, writes(body, 500)); w.Code != 201 || w.Body.Len() != 6000 {
			t.Errorf("with room again, answered %d", w.Code)
		}
	}
	wantNotApplied(t, offloadIn(t, atomically(memstore.New()), func(c *protocol.Config) { c.Offload.Dir += "/none" }).run("key", writes(body, 500)))
	long := offloadIn(t, atomically(memstore.New()), func(c *protocol.Config) { c.Offload.MaxBody = 5999 })
	if w := long.run("key", writes(body, 500)); w.Code != 500 || problemCode(w) != protocol.CodeResponseTooLarge {
		t.Errorf("over MaxBody, answered %d %.200q", w.Code, w.Body)
	}
	if code := replyCode(t, long.finish("memory", memory)); code != protocol.CodeResponseTooLarge {
		t.Errorf("over MaxBody, in memory, answered %s", code)
	}
}

// A client that does not read its replay takes no room from those that are answered for
// the first time: with atomic effects they would be rolled back, and with others not
// kept.
func TestR35UnreadReplaysLeaveRoomForFirstResponses(t *testing.T) {
	t.Parallel()
	for name, records := range map[string]store.Store{"leased": memstore.New(), "atomic": atomically(memstore.New())} {
		o := offloadIn(t, records, func(c *protocol.Config) { c.Offload.MaxBody, c.Offload.MaxSpool = 6000, 12_000 })
		body := large(6000)
		o.run("key", writes(body, 500))
		var unread []io.Closer
		for {
			a := o.admit("key", "body")
			if a.Response.Stream == nil {
				break // as many as there is room for
			}
			unread = append(unread, a.Response.Stream)
		}
		o.wantProblem("key", 503, protocol.CodeStoreUnavailable)
		if len(unread) != 2 {
			t.Errorf("%s: %d replays have room, want 2", name, len(unread))
		}
		for i := range 4 {
			if w := o.run("first"+strconv.Itoa(i), writes(body, 500)); w.Code != 201 || !bytes.Equal(w.Body.Bytes(), body) {
				t.Errorf("%s: a first response is answered %d beside replays that nobody reads", name, w.Code)
			}
		}
		if stats := o.guard.Stats(); stats.Offloaded != 5 || stats.NotOffloaded != 0 {
			t.Errorf("%s: counted %+v", name, stats)
		}
		for _, stream := range unread {
			_ = stream.Close()
		}
		if !bytes.Equal(o.replay("first3").Body.Bytes(), body) {
			t.Errorf("%s: the room of closed replays is not given back", name)
		}
	}
}

// A body that its client has not read for ten seconds gives its room to others: the
// client gets an error in place of the rest, and no other byte. One that is read keeps
// it.
func TestR35UnreadBodyGivesItsRoomToOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := offload(t, func(c *protocol.Config) { c.Offload.MaxBody, c.Offload.MaxSpool = 6000, 12_000 })
		body := large(6000)
		o.run("key", writes(body, 500))
		stuck, read := o.admit("key", "body").Response.Stream, o.admit("key", "body").Response.Stream
		defer stuck.Close()
		defer read.Close()
		got := make([]byte, 100)
		for range 20 {
			for _, stream := range []io.Reader{stuck, read} {
				must(io.ReadFull(stream, got))
			}
			o.wantProblem("key", 503, protocol.CodeStoreUnavailable)
			time.Sleep(9 * time.Second)
		}
		if _, err := io.ReadFull(read, got); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Second)
		for range 2 {
			if !bytes.Equal(o.replay("key").Body.Bytes(), body) {
				t.Error("a body that was not read for ten seconds keeps its room")
			}
		}
		if n, err := stuck.Read(got); n != 0 || err == nil || errors.Is(err, io.EOF) {
			t.Errorf("the client that did not read gets %d bytes more, %v", n, err)
		}
		rest, err := io.ReadAll(read)
		if err != nil || !bytes.Equal(rest, body[2100:]) {
			t.Errorf("the client that read gets %d bytes more, %v", len(rest), err)
		}
	})
}

// R35: a handler that ends without a response to send gives the room of its temporary
// file back: at once where it takes the connection, which it may hold for hours. With
// an atomic store its body was held back, so none of it has left.
func TestR35RoomOfAHandlerWithoutAResponseIsGivenBack(t *testing.T) {
	t.Parallel()
	body := large(6000)
	for name, end := range map[string]func(*protocol.Recorder, func()){
		"hijacks": func(rec *protocol.Recorder, other func()) { rec.Hijack(); other() },
		"panics":  func(*protocol.Recorder, func()) { panic("handler") },
		"streams, and hijacks": func(rec *protocol.Recorder, other func()) {
			rec.Flush()
			rec.Hijack()
			other()
		},
	} {
		for preset, keeps := range map[reprise.Preset]protocol.Code{reprise.Recoverable: "", reprise.AtMostOnce: protocol.CodeResultUnavailable} {
			for _, atomic := range []bool{true, false} {
				var records store.Store = memstore.New()
				if atomic {
					records = atomically(records)
				}
				o := offloadIn(t, records, func(c *protocol.Config) {
					c.Preset, c.Offload.MaxBody, c.Offload.MaxSpool = preset, 6000, 6000
				})
				other := func(key string) {
					o.run(key, writes(body, 500))
					if !bytes.Equal(o.replay(key).Body.Bytes(), body) {
						t.Errorf("%s, atomic %t: there is no room for %s", name, atomic, key)
					}
				}
				func() {
					defer func() { _ = recover() }()
					o.run("key", func(rec *protocol.Recorder, h http.Header, x *protocol.Exchange) {
						writes(body, 500)(rec, h, x)
						end(rec, func() { other("meanwhile") })
					})
				}()
				other("afterwards")
				if keeps != "" {
					o.wantProblem("key", 409, keeps)
				} else if w := o.run("key", answering("again")); w.Code != 201 || w.Body.String() != "again" {
					t.Errorf("%s, atomic %t: a retry is answered %d", name, atomic, w.Code)
				}
			}
		}
	}
}
