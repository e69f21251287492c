package repriseredis

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"time"
)

// What is not combined: a payload of more than largestCombined bytes, which would keep others waiting, and a command with less time
// left than leastPatience, whose deadline would become that of the others. A pipeline has at most mostCombined commands.
const (
	largestCombined = 64 << 10
	leastPatience   = 100 * time.Millisecond
	mostCombined    = 128
)

// combiner sends the commands of calls that come at the same time together. As many sendings as there are lanes are on their
// way at once; what comes meanwhile waits, and when a sending returns, the command that waits longest leads all that wait
// through the free lane as one pipeline. Nothing waits for a timer, and where a lane is free a command goes at once.
type combiner struct {
	transmit func(ctx context.Context, batch []*command) // each command carries its error
	lanes    int
	turns    sync.Pool // of channels

	mu      sync.Mutex
	busy    int        // lanes with a sending on its way
	waiting []*command // not empty only while all lanes are busy
	spare   []*command // memory for the next ones that wait
}

func newCombiner(transmit func(context.Context, []*command)) *combiner {
	return &combiner{transmit: transmit, lanes: 2 * runtime.GOMAXPROCS(0)}
}

// passenger is the part of a command that concerns the combiner.
type passenger struct {
	ctx  context.Context
	turn chan struct{} // receives once: when the command was sent, or when it has to lead
	led  []*command    // what it has to lead, itself first; nil when another one sent it
}

// takes reports whether c may travel with others. Renewals are batches already, and wait for nobody.
func (b *combiner) takes(c *command) bool {
	return b != nil && c.script != renewScript && len(c.payload) <= largestCombined
}

// send sends the one command of open, by itself or with others. Like every sending it returns when the command has its answer or
// its error. A ctx that ends while the command waits takes it back unsent; once it is on its way, the sending's deadline counts.
func (b *combiner) send(ctx context.Context, open []*command) {
	c := open[0]
	b.mu.Lock()
	if b.busy < b.lanes {
		b.busy++
		b.mu.Unlock()
		defer b.pass(nil)
		b.transmit(ctx, open)
		return
	}
	if deadline, bounded := ctx.Deadline(); bounded && time.Until(deadline) < leastPatience {
		b.mu.Unlock()
		b.transmit(ctx, open)
		return
	}
	c.passenger = passenger{ctx: ctx, turn: b.newTurn()}
	b.waiting = append(b.waiting, c)
	b.mu.Unlock()

	select {
	case <-c.turn:
	case <-ctx.Done():
		if b.withdraw(c) {
			c.SetErr(unsent{ctx.Err()})
			b.turns.Put(c.turn)
			return
		}
		<-c.turn
	}
	b.turns.Put(c.turn)
	if c.led != nil {
		b.lead(c.led)
	}
}

func (b *combiner) newTurn() chan struct{} {
	if turn, ok := b.turns.Get().(chan struct{}); ok {
		return turn
	}
	return make(chan struct{}, 1)
}

// withdraw takes a command back that still waits.
func (b *combiner) withdraw(c *command) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	at := slices.Index(b.waiting, c)
	if at < 0 {
		return false
	}
	b.waiting = slices.Delete(b.waiting, at, at+1)
	return true
}

// lead sends a batch within the shortest of its deadlines, tells the others, and passes the lane on.
func (b *combiner) lead(batch []*command) {
	defer func() { // also where a hook of the client panics: what has no answer then is of unknown outcome
		for _, c := range batch[1:] {
			c.turn <- struct{}{}
		}
		b.pass(batch)
	}()
	var within *command
	var until time.Time
	group := make([]*command, 0, len(batch))
	for _, c := range batch {
		if err := c.ctx.Err(); err != nil {
			c.SetErr(unsent{err})
			continue
		}
		group = append(group, c)
		if deadline, bounded := c.ctx.Deadline(); within == nil || bounded && (until.IsZero() || deadline.Before(until)) {
			within, until = c, deadline
		}
	}
	if len(group) > 0 {
		b.transmit(within.ctx, group)
	}
}

// pass gives the lane to those that wait, or frees it. The memory of the batch that came through it is used again.
func (b *combiner) pass(batch []*command) {
	clear(batch)
	b.mu.Lock()
	if cap(batch) > cap(b.spare) {
		b.spare = batch[:0]
	}
	if len(b.waiting) == 0 {
		b.busy--
		b.mu.Unlock()
		return
	}
	n := min(len(b.waiting), mostCombined)
	next := b.waiting[:n:n]
	b.waiting, b.spare = append(b.spare, b.waiting[n:]...), nil
	b.mu.Unlock()
	next[0].led = next
	next[0].turn <- struct{}{}
}
