package repriseclient

import (
	"errors"
	"net/http/httptrace"
	"sync/atomic"
)

// NotSent reports whether err, of a keyed call of a [Transport], says for certain that no
// attempt reached the service: a refused connection, an unknown name, a failed TLS
// handshake, a context that ended before there was a connection. It is true for
// [NotSentError] and for errors that wrap one, such as those of an [http.Client]. A
// handler that made the call in its first attempt may then release its own key.
//
// It is false for everything else: the operation may have run. It is false for the errors
// of other transports, too, because they do not tell: net/http silently repeats a request
// with a key when a reused connection breaks, and returns the error of the last
// connection. A stream that an HTTP/2 server refused counts as sent.
func NotSent(err error) bool {
	var not *NotSentError
	var unknown *UnknownOutcomeError
	return errors.As(err, &not) && !errors.As(err, &unknown)
}

// progress is how far net/http got with the request of an attempt. It repeats a request
// with a key when a reused connection breaks, and then returns the error of the next
// connection only.
type progress struct {
	asked     atomic.Bool // for a connection
	connected atomic.Bool
	written   atomic.Bool // the header, at least
}

func (p *progress) trace() *httptrace.ClientTrace {
	return &httptrace.ClientTrace{
		GetConn:      func(string) { p.asked.Store(true) },
		GotConn:      func(httptrace.GotConnInfo) { p.connected.Store(true) },
		WroteHeaders: func() { p.written.Store(true) },
	}
}

// sent reports whether an attempt that ended with err may have reached the service. A
// base transport that does not trace is believed if its error is of a kind that precedes
// the connection.
func (p *progress) sent(err error) bool {
	unconnected := p.asked.Load() && !p.connected.Load()
	return p.written.Load() || !unconnected && !neverSent(err)
}
