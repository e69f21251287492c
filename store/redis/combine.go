package repriseredis

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/reprise-go/reprise/store/internal/batching"
	"github.com/reprise-go/reprise/store/redis/internal/pipeline"
	"github.com/reprise-go/reprise/store/redis/internal/record"
)

// lanes is how many batches a combiner sends at once.
const lanes = 16

// combiner collects commands that need the confirmation of replicas into batches, and
// sends each batch as a pipeline of the client: WAIT has to follow on the connection that
// wrote, and blocks it. A lane is busy until its batch has been answered; the
// confirmation may come later.
type combiner struct {
	queue *batching.Queue[combined]

	// transmit makes one attempt on a batch. Each command carries its error. It returns a
	// function that waits for the confirmation of the commands marked unconfirmed, or nil
	// when there are none.
	transmit func(ctx context.Context, batch []*command) (confirm func())
	timeout  time.Duration // of a batch, including its confirmation
}

// combined is a command of a batch. It owns its memory, because it may be sent and
// answered after its caller has returned.
type combined struct{ c *command }

func newCombiner(transmit func(context.Context, []*command) func(), timeout time.Duration) *combiner {
	b := &combiner{transmit: transmit, timeout: timeout}
	b.queue = batching.New(batching.Config[combined]{Send: b.sendBatch, Lanes: lanes, Later: true})
	return b
}

// combines reports whether c may be in a batch. Renewals are batches already.
func (b *combiner) combines(c *command) bool {
	return b != nil && c.wait && c.script != record.RenewScript && len(c.payload) <= pipeline.MaxPayload
}

// send sends c, alone or in a batch. It returns when c has its answer or its error, or
// when ctx ends.
func (b *combiner) send(ctx context.Context, c *command) {
	call := b.queue.Call()
	defer call.Release()
	own := c.clone() //nolint:contextcheck // its caller may leave
	call.Value.c, call.Size = own, len(own.payload)
	err := b.queue.Do(ctx, call)
	if err == nil {
		c.adopt(ctx, own)
		return
	}
	var left *batching.Error // errors.As allocates
	switch {
	case !errors.As(err, &left):
		c.SetErr(err)
	case left.Sent:
		c.SetErr(left.Err)
	default:
		c.SetErr(neverSent(left.Err))
	}
}

// sendBatch sends a batch. A goroutine then waits for the confirmation of its writes, and
// ends with it.
func (b *combiner) sendBatch(ctx context.Context, batch []batching.Sent[combined]) {
	cancel := context.CancelFunc(func() {})
	if _, bounded := ctx.Deadline(); !bounded { // not the context of a caller, or one without a deadline
		ctx, cancel = context.WithTimeout(ctx, b.timeout)
	}
	commands := make([]*command, len(batch))
	for i, s := range batch {
		commands[i] = s.Value().c
	}
	confirming := false
	defer func() {
		if !confirming {
			cancel()
		}
	}()
	confirm := b.transmit(ctx, commands)
	var open []batching.Sent[combined]
	for i, s := range batch {
		if confirm != nil && commands[i].unconfirmed {
			open = append(open, s)
		} else {
			s.Finish(nil)
		}
	}
	if confirm == nil {
		return
	}
	confirming = true
	go func() {
		defer cancel()
		defer func() { // a hook of the client may panic: unconfirmed writes carry an error
			_ = recover()
			for _, s := range open {
				s.Finish(nil)
			}
		}()
		confirm()
	}()
}

// clone returns a copy of c, with separate memory, for one attempt.
func (c *command) clone() *command {
	d := &command{script: c.script, key: c.key, wait: c.wait, claim: c.claim, asking: c.asking, redirect: c.redirect}
	d.payload = append(blob(nil), c.payload...)
	d.StringCmd = redis.NewStringCmd(context.Background(), d.own(c, c.StringCmd.Args())...)
	if c.tail != nil {
		d.SetFirstKeyPos(1)
		d.tail = redis.NewIntCmd(context.Background(), d.own(c, c.tail.Args())...)
		d.tail.SetFirstKeyPos(1)
	} else {
		d.SetFirstKeyPos(3)
	}
	return d
}

// own returns copies of the arguments of another command. They refer to no memory of it.
func (c *command) own(of *command, args []any) []any {
	own := make([]any, len(args))
	for i, arg := range args {
		switch arg := arg.(type) {
		case *string:
			own[i] = *arg
		case *int64:
			own[i] = *arg
		case *blob:
			if arg == &of.payload {
				own[i] = &c.payload
				continue
			}
			copied := append(blob(nil), *arg...)
			own[i] = &copied
		default:
			own[i] = arg
		}
	}
	return own
}

// adopt gives c the result of its clone.
func (c *command) adopt(ctx context.Context, d *command) {
	if c.claim != nil && d.claim == nil {
		c.useScript(ctx) // confirmLater repeated the claim by the script
	}
	c.granted, c.uncertain = d.granted, c.uncertain || d.uncertain
	c.SetVal(d.Val())
	if c.tail != nil { // d has the same commands as c
		c.tail.SetVal(d.tail.Val())
		c.tail.SetErr(d.tail.Err())
	}
	c.SetErr(d.sendErr)
	c.ackErr = d.ackErr
}
