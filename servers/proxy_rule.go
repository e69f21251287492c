package servers

import (
	"bytes"
	"slices"
)

// Action is the behaviour of a proxy towards one request. See [Proxy.On].
type Action uint8

// The actions of a proxy.
const (
	// Pass forwards the request unchanged.
	Pass Action = iota

	// LoseRequest discards the request and closes its connection: it is not executed.
	LoseRequest

	// LoseReply passes the request on, discards the first bytes that the server answers, and
	// closes the connection: it was executed.
	LoseReply

	// CutAfter passes the request on and closes the connection at once, without a reply: it
	// may be executed.
	CutAfter

	// Silence passes the request on and discards all that comes later on its connection,
	// both ways, without closing it.
	Silence
)

// maxMatch bounds the length of a rule's match, in bytes.
const maxMatch = 256

// On arms the proxy for requests that contain match, such as "evalsha" or "commit"; an
// empty match is in every request. The first such request from now meets the first
// action, the next one the next; after the last the rule is gone. Of several rules the
// one that was armed first applies. The channel is closed when the last action has been
// done: for LoseReply, when the reply has come and is lost.
//
// A request is a piece that the proxy reads from the client in one call: several requests
// in one write count as one, and for a client that sends before it has the reply to its
// last request, replies may be mismatched. A match across two pieces is found.
func (p *Proxy) On(match string, actions ...Action) <-chan struct{} {
	if len(match) > maxMatch || len(actions) == 0 {
		panic("servers: a rule needs actions and a match of at most 256 bytes")
	}
	r := &rule{match: []byte(match), actions: actions, done: make(chan struct{})}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rules = append(p.rules, r)
	return r.done
}

// rule is armed for some requests.
type rule struct {
	match   []byte
	actions []Action // those that are left
	done    chan struct{}
}

// step is the actions for one request. After them, finished is called.
type step struct {
	action   Action
	finished func()
}

// nextStep finds the rule for a piece of a stream that follows tail, and takes its next
// action. The caller holds the proxy's mu.
func (p *Proxy) nextStep(tail, piece []byte) step {
	for i, r := range p.rules {
		if !r.matches(tail, piece) {
			continue
		}
		s := step{action: r.actions[0], finished: func() {}}
		r.actions = r.actions[1:]
		if len(r.actions) == 0 {
			p.rules = append(p.rules[:i:i], p.rules[i+1:]...)
			s.finished = func() { close(r.done) }
		}
		return s
	}
	return step{finished: func() {}}
}

// matches reports whether the match ends in piece. It may begin in tail.
func (r *rule) matches(tail, piece []byte) bool {
	before := tail[max(0, len(tail)-max(0, len(r.match)-1)):]
	return bytes.Contains(append(slices.Clip(before), piece...), r.match)
}
