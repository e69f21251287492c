package repriseredis

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reprise-go/reprise/store/internal/batching"
	"github.com/reprise-go/reprise/store/redis/internal/record"
)

// Limits of batches. ADR 10 has the measurements.
const (
	// mostLanes bounds the batches on their way to a server at once, as does half of the
	// client's pool. Fewer lanes make larger batches, which cost less; a slow network needs
	// more, because a lane is busy for a round trip.
	mostLanes = 8

	// yields is how often the goroutine that collects a batch lets others add their calls.
	yields = 2

	// fewCalls is up to how many calls on their way to a server are sent alone, each by its
	// caller: so few are faster on connections of their own.
	fewCalls = 4

	// staysBusy is how many calls in a row have to find few others before calls are sent
	// alone again.
	staysBusy = 64

	// maxPayload is the size of the largest payload of a call in a batch, in bytes. A larger
	// one would delay the others.
	maxPayload = 64 << 10

	// maxFound is how much of a record a claim in a batch reads at most, and maxReplies how
	// much all claims of a batch read together, in bytes.
	maxFound   = 64 << 10
	maxReplies = 1 << 20

	// answerWithin is how long the answers to a batch may take where the client has no
	// ReadTimeout.
	answerWithin = 3 * time.Second

	// overhead is about how much a command adds to a batch besides its arguments, in bytes.
	overhead = 128
)

// node is a server, or the client of a whole cluster, with the queues of calls for it.
type node struct {
	client  redis.UniversalClient
	store   *Store
	server  *redis.Client // the client; nil for that of a cluster
	timeout time.Duration // of a batch, without the wait for replicas

	// calls has the calls that need no confirmation; nil: each is sent alone. confirmed has
	// the writes that replicas or disks have to confirm: its lanes are busy for as long, and
	// leave half of the pool to other calls.
	calls, confirmed *batching.Queue[*command]

	few    int64        // see begin
	active atomic.Int64 // calls that began and have not ended
	busy   atomic.Int64 // for how many more calls begin reports false; negative: none
	found  atomic.Int64 // the mean size of the records that claims found lately, in bytes
}

// newNode returns the node of a server.
func (s *Store) newNode(server *redis.Client) *node {
	n := &node{store: s, client: server, server: server, timeout: cmp.Or(max(0, s.readTimeout), answerWithin)}
	half := server.Options().PoolSize / 2
	n.few = int64(min(fewCalls, half))
	c := batching.Config[*command]{
		Send: n.sendBatch, Begins: true, Lanes: min(mostLanes, half), Yields: yields,
		// A client that ignores the deadlines of contexts would block its caller.
		Detached: !s.ctxTimeouts,
	}
	if !s.config.NoCombining {
		n.calls = batching.New(c)
	} else {
		c.Lanes, c.MaxCalls = half, 1
	}
	if s.config.Durability.level != async {
		n.confirmed = batching.New(c)
	}
	return n
}

// begin counts a call as on its way to the server, until its end is counted. It reports
// whether few calls are on their way. For a small pool, few means half of its
// connections.
//
// After it has reported false, it does so for the next [staysBusy] calls as well.
// Otherwise, some calls would always miss the batches of the others.
func (n *node) begin() (few bool) {
	if n.active.Add(1) > n.few {
		n.busy.Store(staysBusy)
		return false
	}
	return n.busy.Add(-1) < 0
}

// do makes an attempt on c, alone or in a batch. It returns an error if c has no result,
// because ctx has ended or because the sender of a batch has panicked. Then c belongs to
// that sender.
func (n *node) do(ctx context.Context, c *command) error {
	queue := n.calls
	switch {
	case c.confirm:
		queue = n.confirmed
	case queue == nil:
		n.send(ctx, c)
		return nil
	default:
		few := n.begin()
		defer n.active.Add(-1)
		if few || !c.isBounded() {
			n.send(ctx, c)
			return nil
		}
	}
	c.payload = bytes.Clone(c.payload) // its caller may leave, and reuse it
	c.taken.Store(false)
	call := queue.Call()
	defer call.Release()
	call.Value, call.Size = c, n.size(c)
	err := queue.Do(ctx, call)
	if err == nil {
		call.Value = nil
		return nil
	}
	var left *batching.Error
	var panicked *batching.PanicError
	switch {
	case errors.As(err, &panicked):
		panic(panicked) // as it does where a call is alone
	case !errors.As(err, &left) || left.Sent:
		return err
	case c.taken.Load() && !n.isExhausted() && n.server.PoolStats().IdleConns == 0: // the batch waits for a dial
		return special{err, unsent}
	default:
		return special{err, exhausted}
	}
}

// size returns how much c adds to a batch, in bytes: to its writes, or to its replies.
func (n *node) size(c *command) int {
	size := overhead + len(c.fixed) + len(c.head) + len(c.payload)
	if c.claim != nil {
		size += int(n.found.Load())
	}
	return size
}

// sendBatch sends a batch of a queue.
func (n *node) sendBatch(ctx context.Context, batch []batching.Sent[*command]) {
	commands := make([]*command, len(batch))
	timeout := n.timeout
	for i, s := range batch {
		c := *s.Value()
		commands[i], c.sent = c, s
		c.taken.Store(true)
		if c.confirm {
			timeout = n.timeout + n.store.config.AckTimeout
		}
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	n.send(ctx, commands...)
	n.noteFound(commands)
	for i, s := range batch {
		commands[i].sent = batching.Sent[*command]{}
		s.Finish(nil)
	}
}

// noteFound notes the size of the records that the claims of a batch found, so that the
// replies to the next ones are about as large as a batch may be.
func (n *node) noteFound(batch []*command) {
	claims, sum := 0, 0
	for _, c := range batch {
		if c.claim != nil {
			claims++
			sum += len(c.record())
		}
	}
	if claims > 0 {
		mean := n.found.Load()
		n.found.Store(mean + (int64(sum/claims)-mean)/8)
	}
}

// isBounded reports whether c and its reply are small enough for a batch. The scripts of
// claims and of inspections answer with payloads.
func (c *command) isBounded() bool {
	switch c.script {
	case record.ClaimScript:
		return c.claim != nil
	case record.InspectScript:
		return false
	default:
		return len(c.payload) <= maxPayload
	}
}
