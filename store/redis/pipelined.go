package repriseredis

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/reprise-go/reprise/store/redis/internal/pipeline"
	"github.com/reprise-go/reprise/store/redis/internal/record"
)

// Pipelined is a call that the store sent on its own connection, where hooks of the
// client do not see it. See Config.Hook.
type Pipelined struct {
	Server   string        // the address in the options of the client
	Command  string        // the name of the (first) command, in lower case
	Start    time.Time     // when the call was made
	Duration time.Duration // from Start until the answer
	Batch    int           // how many calls were sent in one write, this one included; zero: unknown
	Err      error         // of the connection, of the context or of the server; redis.Nil is an answer, not a failure
}

// sendPipelined makes an attempt on a command through the pipeline of its server, or
// through the client where that is faster.
func (s *Store) sendPipelined(ctx context.Context, node *redis.Client, open []*command) {
	c := open[0]
	var start time.Time
	if s.hook != nil {
		start = time.Now()
	}
	answer, pipelined, err := s.pipelines.Do(ctx, node, c, func() error {
		s.sendByClient(ctx, open)
		return c.sendErr
	})
	switch {
	case !pipelined:
		return
	case err == nil:
		c.receive(&answer.Replies)
	case errors.Is(err, pipeline.ErrUnsent):
		c.SetErr(neverSent(err))
	default:
		c.SetErr(err)
	}
	c.viaClient = c.sendErr != nil && !errors.Is(c.sendErr, redis.Nil)
	if s.hook != nil {
		name, _ := c.Args()[0].(string)
		s.hook(ctx, Pipelined{Server: node.Options().Addr, Command: name, Start: start, Duration: time.Since(start), Batch: answer.Batch, Err: c.sendErr})
	}
}

// mayPipeline reports whether an attempt on c may go through a pipeline.
func (s *Store) mayPipeline(c *command) bool {
	return s.pipelines != nil && !c.viaClient && c.redirect == "" && c.isBounded() && (!c.wait || s.durability.level == async)
}

// isBounded reports whether c and its reply are small enough to share a connection. The
// scripts of claims and of inspections answer with payloads. Renewals are batches
// already.
func (c *command) isBounded() bool {
	switch c.script {
	case record.ClaimScript:
		return c.claim != nil
	case record.InspectScript, record.RenewScript:
		return false
	default:
		return len(c.payload) <= pipeline.MaxPayload
	}
}

// AppendTo implements [pipeline.Call]. In a pipeline, a native claim reads the start of
// the record with a third command, which bounds its reply:
//
//	SET key record NX PX span
//	PEXPIRETIME key
//	GETRANGE key 0 limit
//
// The commands are not one atomic step: the last one may read a record that has replaced
// the one that the first one found.
func (c *command) AppendTo(b []byte) (out []byte, replies string) {
	args := c.Args()
	replies = "$"
	if c.claim != nil {
		args, replies = args[:len(args)-1], "+:$" // without GET
	}
	out, ok := pipeline.AppendCommand(b, args)
	if ok && c.claim != nil {
		out, _ = pipeline.AppendCommand(out, c.tail.Args())
		out, ok = pipeline.AppendCommand(out, []any{argRange, &c.key, argFirst, argLast})
	}
	if !ok {
		return out, ""
	}
	return out, replies
}

// The arguments of GETRANGE that are the same for every claim.
var argRange, argFirst, argLast any = "getrange", 0, pipeline.MaxReply - 1

// receive gives c its replies.
func (c *command) receive(replies *[pipeline.MaxReplies]pipeline.Reply) {
	r := &replies[0]
	if c.claim != nil {
		setNumber(c.tail, &replies[1])
		if r.Kind == pipeline.Nil {
			r = &replies[2]
			c.partial = len(r.Text) == 0 || len(r.Text) == pipeline.MaxReply // deleted meanwhile, or longer
		}
	}
	switch r.Kind {
	case pipeline.String:
		c.SetVal(r.Text)
	case pipeline.Nil, pipeline.Status: // as the client does, report by redis.Nil that there was no record
		c.SetErr(redis.Nil)
	case pipeline.Failure:
		c.SetErr(serverError(r.Text))
	default:
		c.SetErr(errUnexpected)
	}
}

// setNumber gives a command that is answered with a number its reply.
func setNumber(c *redis.IntCmd, r *pipeline.Reply) {
	switch r.Kind {
	case pipeline.Number:
		c.SetVal(r.Number)
	case pipeline.Failure:
		c.SetErr(serverError(r.Text))
	default:
		c.SetErr(errUnexpected)
	}
}

// serverError is an error that a server answered. It is a redis.Error.
type serverError string

func (e serverError) Error() string { return string(e) }

// RedisError distinguishes it from the errors of connections.
func (serverError) RedisError() {}
