package serve

import (
	"io"
	"sync"
	"time"
)

// lines writes log lines to a writer without ever waiting for it: the parent of the
// server may not read its standard error, and a full pipe must not stop the requests.
// Lines that do not fit into the buffer are dropped.
type lines struct {
	queue chan []byte
	done  chan struct{}

	mu     sync.RWMutex
	closed bool
}

const (
	lineBuffer  = 4096
	lineTimeout = time.Second // how long close waits for the reader
)

func newLines(w io.Writer) *lines {
	l := &lines{queue: make(chan []byte, lineBuffer), done: make(chan struct{})}
	go func() {
		defer close(l.done)
		for line := range l.queue {
			_, _ = w.Write(line) // there is nowhere to say that it failed
		}
	}()
	return l
}

// Write implements [io.Writer]. It never fails.
func (l *lines) Write(line []byte) (int, error) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if l.closed {
		return len(line), nil
	}
	select {
	case l.queue <- append([]byte(nil), line...):
	default:
	}
	return len(line), nil
}

// close writes the rest of the buffer, as far as the pipe takes it.
func (l *lines) close() {
	l.mu.Lock()
	closed := l.closed
	l.closed = true
	l.mu.Unlock()
	if !closed {
		close(l.queue)
	}
	select {
	case <-l.done:
	case <-time.After(lineTimeout):
	}
}
