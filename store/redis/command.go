package repriseredis

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"
	reprise "github.com/reprise-go/reprise/core"
)

// maxFixed is the size in bytes of the largest fixed argument, that of a claim.
const maxFixed = 69

// command is one script call on its way, and its answer. It is the only thing that a call allocates besides its key and its
// reply, so its arguments live in it and are passed by address.
type command struct {
	*redis.StringCmd
	script *script
	key    string
	wait   bool // whether the durability level applies

	args    [6]any // evalsha, digest, 1, key, fixed argument, payload
	fixed   blob
	payload blob
	room    [maxFixed]byte // backs fixed

	told      string // the node that a cluster named for the next attempt
	asking    bool   // whether it has to be told so
	uncertain bool   // an earlier attempt may have been executed
	acks      error  // why the write does not count as durable, nil when it does
	err       error  // the failure, of a class of the package reprise

	alone     [1]*command // the command itself, to be run by itself
	passenger             // the combiner's
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

// carry gives c a payload. An empty payload is an argument too. It comes before prepare.
func (c *command) carry(payload []byte) {
	if payload == nil {
		payload = []byte{}
	}
	c.payload = payload
}

// withSource makes the next attempt send the source of the script instead of its digest.
func (c *command) withSource() { c.args[0], c.args[1] = "eval", c.script.source }

// NoRetry tells go-redis to leave repetitions to [Store.run], which has to know what became of each attempt.
func (c *command) NoRetry() bool { return true }

// reply returns the answer of the script, never empty when the command succeeded.
func (c *command) reply() []byte {
	b, _ := c.Bytes()
	return b
}

// blob is a binary argument. It is passed by address, which costs no allocation, and shows its size only: owners and
// payloads do not belong into the trace of a command.
type blob []byte

// MarshalBinary returns the bytes themselves, for go-redis to write out.
func (b *blob) MarshalBinary() ([]byte, error) { return *b, nil }

// String keeps the bytes out of logs and traces.
func (b *blob) String() string { return fmt.Sprintf("[%d bytes]", len(*b)) }

// key returns the Redis key of id, which is also the name of its channel: the prefix and the 32 bytes of the ID. A key is kept with
// every record, and readable digits would make it a third longer or more.
func (s *Store) key(id reprise.ID) string {
	var stack [maxPrefix + len(id)]byte
	return string(append(append(stack[:0], s.prefix...), id[:]...))
}
