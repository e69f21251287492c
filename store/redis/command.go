package repriseredis

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/internal/batching"
	"github.com/reprise-go/reprise/store/internal/prefix"
	"github.com/reprise-go/reprise/store/redis/internal/record"
)

// command is one call and its answer: of a script, or a native claim, which is two or
// three commands of Redis. It is the only allocation of a call besides its key and its
// reply, so its arguments live in it and are passed by address.
//
// A batch may use a command after its caller has left. It only uses the fields of make,
// and the result of the attempt.
type command struct {
	script *record.Script
	key    string
	claim  *nativeClaim // its request, where it is a native claim

	args    [maxArgs]any // the arguments, with the ones below by address; last, those of tail
	fixed   blob
	head    blob
	payload blob
	span    int64

	// The result of the last attempt. The commands of Redis are made for each attempt; tail
	// and found are those of a native claim, see there.
	*redis.StringCmd
	tail    *redis.IntCmd
	found   *redis.StringCmd
	sendErr error    // how the attempt failed, nil when it was answered
	first   *command // the first command of its pipeline, nil outside of one
	ackErr  error    // why the write does not count as durable, nil when it does

	sent batching.Sent[*command] // while a batch has it: the call of its caller

	ask string // the node that a cluster named for the next attempt only
	err error  // the failure, of a class of the package reprise

	// The flags stand together, so that a native claim fits into an allocation of 768 bytes.
	buf       [record.MaxFixed]byte // backs fixed and head
	n         uint8                 // the number of arguments
	confirm   bool                  // the attempt waits for the confirmation that the level asks for
	bothKeys  bool                  // the call also names the key of the payload: see lua/record.lua
	written   bool                  // the attempt may have been written to a connection
	null      bool                  // the first command of a native claim was answered by nil
	moved     bool                  // a cluster named another node for the next attempt
	uncertain bool                  // an earlier attempt may have been executed
	taken     atomic.Bool           // the attempt is in a batch

	alone [1]*command // the command itself, for a batch of one
}

// maxArgs is the number of arguments of the largest command: a completion with two keys.
const maxArgs = 4 + 1 + 4

// callScript makes c a call of its script on its key. The arguments are pointers into
// c, so that they cost no allocation.
func (c *command) callScript(args ...any) {
	c.args[0], c.args[1], c.args[2], c.args[3] = "evalsha", c.script.Digest, 1, &c.key
	c.n = 4
	if c.bothKeys {
		c.args[2], c.args[4] = 2, payloadKey(c.key)
		c.n++
	}
	c.n += uint8(copy(c.args[c.n:], args)) //nolint:gosec // at most maxArgs
}

// make makes the commands of Redis for an attempt. If limit is positive, a native claim
// reads only so many bytes of the record that it finds.
func (c *command) make(ctx context.Context, limit int) {
	c.tail, c.found, c.first = nil, nil, nil
	c.sendErr, c.ackErr, c.null, c.written = errUnanswered, nil, false, false
	if c.claim == nil {
		c.StringCmd = redis.NewStringCmd(ctx, c.args[:c.n]...)
		c.SetFirstKeyPos(3)
		return
	}
	c.claim.sent = time.Now()
	n := c.n
	if limit > 0 {
		n-- // without GET
		c.found = redis.NewStringCmd(ctx, argRange, &c.key, 0, limit-1)
		c.found.SetFirstKeyPos(1)
	}
	c.StringCmd = redis.NewStringCmd(ctx, c.args[:n]...)
	c.SetFirstKeyPos(1)
	c.tail = redis.NewIntCmd(ctx, c.args[maxArgs-2:]...)
	c.tail.SetFirstKeyPos(1)
}

// Args returns the arguments for go-redis, which writes them when it has a connection. A
// call that was withdrawn before is not sent: a PING takes its place.
func (c *command) Args() []any {
	if c.sent != (batching.Sent[*command]{}) && !c.sent.Begin() {
		return argsPing
	}
	c.written = true
	return c.StringCmd.Args()
}

var argsPing = []any{"ping"}

// NoRetry tells go-redis to leave repetitions to [Store.run], which has to know the
// result of each attempt. It holds for all commands of a pipeline.
func (c *command) NoRetry() bool { return true }

// SetErr is called by go-redis with the error of an attempt. go-redis decides by the
// error of the first command of a pipeline whether to keep the connection. A server that
// was demoted may have answered the first command and refused this one, so the first gets
// the error too.
//
// go-redis passes the error of a connection also on to commands that were answered
// before: SetErr ignores it. And it hides from go-redis that the first command of a
// native claim was answered by nil, because go-redis would spend time on finding out
// whether the connection failed.
func (c *command) SetErr(err error) {
	if c.sendErr == nil {
		return
	}
	if c.claim != nil && errors.Is(err, redis.Nil) {
		c.null, err = true, nil
	}
	c.sendErr = err
	c.StringCmd.SetErr(err)
	if c.first != nil && c.first != c && redis.IsReadOnlyError(err) {
		c.first.StringCmd.SetErr(err)
	}
}

// reply returns the answer of the script, never empty when the command succeeded.
func (c *command) reply() []byte {
	b, _ := c.StringCmd.Bytes()
	return b
}

// blob is a binary argument. It is passed by address, which costs no allocation. Its
// String shows only the size, because owners and payloads do not belong in the trace of a
// command.
type blob []byte

// MarshalBinary returns the bytes themselves, for go-redis to write out.
func (b *blob) MarshalBinary() ([]byte, error) { return *b, nil }

func (b *blob) String() string { return fmt.Sprintf("[%d bytes]", len(*b)) }

// key returns the Redis key of id, which is also the name of its channel: the prefix and
// the 32 bytes of the ID in braces. The bytes are not encoded, because each record has a
// key, and readable digits would make it longer by a third or more.
//
// A cluster computes the slot from the text between the braces, so the key of the payload
// is in the same slot. That text ends at the first closing brace, which may be a byte of
// the ID, and must not be empty. So closing braces at the start of the ID come before the
// opening one.
func (s *Store) key(id store.ID) string {
	var stack [prefix.Max + keySize]byte
	n := 0
	for n < len(id) && id[n] == '}' {
		n++
	}
	b := append(append(stack[:0], s.config.Prefix...), id[:n]...)
	return string(append(append(append(b, '{'), id[n:]...), '}'))
}

// keySize is the size in bytes of a key without its prefix.
const keySize = len(store.ID{}) + 2

// payloadKey returns the key of the payload for the record at key, where the record
// outlives its payload.
func payloadKey(key string) string { return key + "p" }

// idOf returns the ID whose record is at key.
func (s *Store) idOf(key string) (id store.ID, ok bool) {
	digest, ok := strings.CutPrefix(key, s.config.Prefix)
	if !ok || len(digest) != keySize {
		return id, false
	}
	before, after, _ := strings.Cut(digest[:keySize-1], "{")
	copy(id[copy(id[:], before):], after)
	return id, s.key(id) == key
}
