package spool

import (
	"io"
	"sync"
	"time"

	"github.com/reprise-go/reprise/core/internal/record"
)

// patience is how long a client may leave a body unread before it loses the file to one
// that finds no room.
const patience = 10 * time.Second

// body is a spool on its way to a client.
type body struct {
	from  io.Reader
	spool *Spool

	mu    sync.Mutex // guards the fields below, and spool
	since time.Time  // of the last read
}

// Body returns a reader of the whole body for a client, which closes the spool. It ends
// with an error if the client does not read for a while, and another body finds no room.
func (s *Spool) Body() io.ReadCloser {
	file := io.NewSectionReader(s.cover, 0, s.size)
	b := &body{from: file, spool: s, since: time.Now()}
	if s.key != nil {
		b.from = record.NewBlobOpener(file, s.key)
	}
	d := s.files
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.sent == nil {
		d.sent = make(map[*body]struct{})
	}
	d.sent[b] = struct{}{}
	return b
}

// Read implements [io.Reader].
func (b *body) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.spool.ended != nil {
		return 0, b.spool.ended
	}
	b.since = time.Now()
	return b.from.Read(p)
}

// Close implements [io.Closer].
func (b *body) Close() error {
	b.end(errClosed)
	return nil
}

func (b *body) end(reason error) {
	d := b.spool.files
	d.mu.Lock()
	delete(d.sent, b)
	d.mu.Unlock()
	b.mu.Lock()
	defer b.mu.Unlock()
	_ = b.spool.end(reason)
}

// unread returns since when the body was not read.
func (b *body) unread() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.since
}

// take counts n bytes more, and reports whether there is room for them. The room is
// compared before it is taken: bytes that find none are never counted, and refuse no
// others meanwhile.
func (d *Files) take(n int64) bool {
	for {
		used := d.used.Load()
		if n <= d.Max-used {
			if d.used.CompareAndSwap(used, used+n) {
				return true
			}
			continue
		}
		b := d.longestUnread()
		if b == nil {
			return false
		}
		b.end(errUnread)
	}
}

// longestUnread returns the body that was not read for the longest time, nil if that is
// not long for any.
func (d *Files) longestUnread() (longest *body) {
	since := time.Now().Add(-patience)
	d.mu.Lock()
	defer d.mu.Unlock()
	for b := range d.sent {
		if u := b.unread(); !u.After(since) {
			longest, since = b, u
		}
	}
	return longest
}
