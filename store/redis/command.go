package repriseredis

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"
	reprise "github.com/reprise-go/reprise/core"
)

// maxFixed is the size in bytes of the largest fixed argument, that of a claim whose
// reply is limited.
const maxFixed = claimSize + 1

// command is one script call and its answer. It is the only allocation of a call besides
// its key and its reply, so its arguments live in it and are passed by address.
type command struct {
	*redis.StringCmd
	script *script
	key    string
	wait   bool // whether the durability level applies

	args    [6]any // evalsha, digest, 1, key, fixed argument, payload
	fixed   blob
	payload blob
	buf     [maxFixed]byte // backs fixed

	sendErr     error    // how the last attempt failed, nil when it was answered
	head        *command // the first command of its pipeline, nil outside of one
	redirect    string   // the node that a cluster named for the next attempt
	asking      bool     // whether that node needs ASKING first
	large       bool     // the reply exceeds the limit for batches: send it alone, without the limit
	uncertain   bool     // an earlier attempt may have been executed
	unconfirmed bool     // answered, and the confirmation of its write is still missing
	ackErr      error    // why the write does not count as durable, nil when it does
	err         error    // the failure, of a class of the package reprise

	alone  [1]*command // the command itself, for a batch of one
	queued             // the combiner's part
}

// prepare makes c a call of its script on the record of id with the fixed argument.
func (s *Store) prepare(ctx context.Context, c *command, id reprise.ID, fixed []byte) {
	c.key, c.fixed = s.key(id), fixed
	c.args = [6]any{"evalsha", c.script.digest, 1, &c.key, &c.fixed, &c.payload}
	n := len(c.args)
	if c.payload == nil {
		n--
	}
	c.StringCmd = redis.NewStringCmd(ctx, c.args[:n]...)
	c.SetFirstKeyPos(3)
}

// setPayload gives c a payload, which is an argument even when it is empty. It is called
// before prepare.
func (c *command) setPayload(payload []byte) {
	if payload == nil {
		payload = []byte{}
	}
	c.payload = payload
}

// withSource makes the next attempt send the source of the script instead of its digest.
func (c *command) withSource() { c.args[0], c.args[1] = "eval", c.script.source }

// limitReply makes a claim answer [tagLarge] instead of a payload that would delay the
// other commands of its batch.
func (c *command) limitReply() {
	if c.script == claimScript && len(c.fixed) == claimSize {
		c.fixed = append(c.fixed, 1)
	}
}

// unlimitReply undoes limitReply, and keeps c out of batches.
func (c *command) unlimitReply() {
	c.fixed = c.fixed[:claimSize]
	c.large = true
}

// NoRetry tells go-redis to leave repetitions to [Store.run], which has to know what
// became of each attempt.
func (c *command) NoRetry() bool { return true }

// SetErr is called by go-redis with the error of an attempt. By the error of the first
// command of a pipeline go-redis decides whether to keep the connection. A server that
// was demoted may have answered the first command and refused this one, so the first gets
// its error too.
func (c *command) SetErr(err error) {
	c.sendErr = err
	c.StringCmd.SetErr(err)
	if c.head != nil && c.head != c && redis.IsReadOnlyError(err) {
		c.head.StringCmd.SetErr(err)
	}
}

// reply returns the answer of the script, never empty when the command succeeded.
func (c *command) reply() []byte {
	b, _ := c.StringCmd.Bytes()
	return b
}

// blob is a binary argument. It is passed by address, which costs no allocation, and
// shows only its size: owners and payloads do not belong in the trace of a command.
type blob []byte

// MarshalBinary returns the bytes themselves, for go-redis to write out.
func (b *blob) MarshalBinary() ([]byte, error) { return *b, nil }

// String keeps the bytes out of logs and traces.
func (b *blob) String() string { return fmt.Sprintf("[%d bytes]", len(*b)) }

// key returns the Redis key of id, which is also the name of its channel: the prefix and
// the 32 bytes of the ID. Every record has a key, and readable digits would make it a
// third longer or more.
func (s *Store) key(id reprise.ID) string {
	var stack [maxPrefix + len(id)]byte
	return string(append(append(stack[:0], s.prefix...), id[:]...))
}
