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
	Duration time.Duration // until the answer, including the time until the call was sent
	Batch    int           // how many calls were sent in one write, this one included; zero: unknown
	Err      error         // of the connection, of the context or of the server; redis.Nil is an answer
}

// sendPipelined makes an attempt on c through a pipeline. It reports false when it did
// not send it: the client has to.
func (s *Store) sendPipelined(ctx context.Context, p *pipeline.Pipeline, c *command) bool {
	var start time.Time
	if s.hook != nil {
		start = time.Now()
	}
	answer, err := p.Do(ctx, c)
	switch {
	case errors.Is(err, pipeline.ErrNotTaken):
		return false
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
		s.hook(ctx, Pipelined{Server: p.Addr(), Command: name, Start: start, Duration: time.Since(start), Batch: answer.Batch, Err: c.sendErr})
	}
	return true
}

// pipelineFor returns the pipeline for c, and nil where its attempt has to go through the
// client. Renewals are batches already.
func (s *Store) pipelineFor(ctx context.Context, c *command) *pipeline.Pipeline {
	if s.pipelines == nil || c.viaClient || c.redirect != "" || c.script == record.RenewScript || c.wait && s.durability.level != async {
		return nil
	}
	node, err := s.nodeFor(ctx, c.key)
	if err != nil {
		return nil
	}
	return s.pipelines.Of(node)
}

// afterClient makes the pipelines follow the results of commands that the client sent:
// connect once the server answers, and end with the client.
func (s *Store) afterClient(p *pipeline.Pipeline, sent []*command) {
	switch err := sent[0].sendErr; {
	case errors.Is(err, redis.ErrClosed):
		s.pipelines.Close()
	case p != nil && (err == nil || isReply(err)):
		p.Connect()
	}
}

func isReply(err error) bool {
	var answered redis.Error
	return errors.As(err, &answered)
}

// AppendTo implements [pipeline.Call]: the commands of Redis that c is. A call with a
// larger payload than a pipeline takes has none.
func (c *command) AppendTo(b []byte) (out []byte, replies string) {
	if len(c.payload) > pipeline.MaxPayload {
		return b, ""
	}
	out, ok := pipeline.AppendCommand(b, c.Args())
	replies = "$"
	if ok && c.tail != nil {
		out, ok = pipeline.AppendCommand(out, c.tail.Args())
		replies = "$:"
	}
	if !ok {
		return out, ""
	}
	return out, replies
}

// receive gives c its replies.
func (c *command) receive(replies *[pipeline.MaxReplies]pipeline.Reply) {
	if c.tail != nil {
		setNumber(c.tail, &replies[1])
	}
	switch r := &replies[0]; r.Kind {
	case pipeline.String:
		c.SetVal(r.Text)
	case pipeline.Nil:
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

// RedisError tells it from the errors of connections.
func (serverError) RedisError() {}
