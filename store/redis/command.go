package repriseredis

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"
	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/internal/prefix"
	"github.com/reprise-go/reprise/store/redis/internal/record"
)

// command is one call and its answer: of a script, or a native claim, which is two
// commands of Redis. It is the only allocation of a call besides its key and its reply,
// so its arguments live in it and are passed by address.
type command struct {
	*redis.StringCmd
	script *record.Script
	key    string

	// A native claim: its request and, as a second command of Redis, the question for the
	// expiry, which follows on the same connection in the same write. Both are nil for the
	// call of a script.
	claim *nativeClaim
	tail  *redis.IntCmd

	args    [maxArgs]any // the arguments, with the ones below by address
	tailing [2]any       // those of tail
	fixed   blob
	head    blob
	payload blob
	span    int64

	sendErr  error    // how the last attempt failed, nil when it was answered
	first    *command // the first command of its pipeline, nil outside of one
	redirect string   // the node that a cluster named for the next attempt
	ackErr   error    // why the write does not count as durable, nil when it does
	err      error    // the failure, of a class of the package reprise

	// The flags stand together, so that a native claim fits into an allocation of 768 bytes.
	buf         [record.MaxFixed]byte // backs fixed and head
	wait        bool                  // the durability level applies
	bothKeys    bool                  // the call also names the key of the payload: see lua/record.lua
	granted     bool                  // a native claim wrote its record
	asking      bool                  // the node of redirect needs ASKING first
	uncertain   bool                  // an earlier attempt may have been executed
	unconfirmed bool                  // answered, and the confirmation of its write is still missing
	viaClient   bool                  // an attempt of a pipeline failed: leave the next ones to the client
	partial     bool                  // the reply to a native claim may not be the whole record

	alone [1]*command // the command itself, for a batch of one
}

// maxArgs is the number of arguments of the largest command: a completion with two keys.
const maxArgs = 4 + 1 + 4

// call makes c a call of a script on the record of id. The arguments are pointers into c,
// so that they cost no allocation.
func (s *Store) call(ctx context.Context, c *command, id store.ID, args ...any) {
	c.key = s.key(id)
	c.callScript(ctx, args...)
}

// callScript makes c a call of its script on its keys.
func (c *command) callScript(ctx context.Context, args ...any) {
	c.args[0], c.args[1], c.args[2], c.args[3] = "evalsha", c.script.Digest, 1, &c.key
	n := 4
	if c.bothKeys {
		n++
	}
	n += copy(c.args[n:], args)
	if c.bothKeys {
		c.args[2], c.args[4] = 2, payloadKey(c.key)
	}
	c.StringCmd = redis.NewStringCmd(ctx, c.args[:n]...)
	c.SetFirstKeyPos(3)
}

// withSource makes the next attempt send the source of the script instead of its digest.
func (c *command) withSource() { c.args[0], c.args[1] = "eval", c.script.Source }

// NoRetry tells go-redis to leave repetitions to [Store.run], which has to know the
// result of each attempt.
func (c *command) NoRetry() bool { return true }

// SetErr is called by go-redis with the error of an attempt. go-redis decides by the
// error of the first command of a pipeline whether to keep the connection. A server that
// was demoted may have answered the first command and refused this one, so the first gets
// the error too.
//
// A native claim succeeds with the answer nil. SetErr hides it from go-redis, which would
// spend time on finding out whether the connection failed.
func (c *command) SetErr(err error) {
	if c.claim != nil && errors.Is(err, redis.Nil) {
		c.granted, err = true, nil
	}
	c.sendErr = err
	c.StringCmd.SetErr(err)
	if c.first != nil && c.first != c && redis.IsReadOnlyError(err) {
		c.first.StringCmd.SetErr(err)
	}
}

// hasWritten reports whether the server executed c and wrote.
func (c *command) hasWritten() bool {
	if c.claim != nil {
		return c.granted
	}
	answer := c.reply()
	return c.sendErr == nil && len(answer) > 0 && record.Wrote(answer[0])
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
	b := append(append(stack[:0], s.prefix...), id[:n]...)
	return string(append(append(append(b, '{'), id[n:]...), '}'))
}

// keySize is the size in bytes of a key without its prefix.
const keySize = len(store.ID{}) + 2

// payloadKey returns the key of the payload for the record at key, where the record
// outlives its payload.
func payloadKey(key string) string { return key + "p" }

// idOf returns the ID whose record is at key.
func (s *Store) idOf(key string) (id store.ID, ok bool) {
	digest, ok := strings.CutPrefix(key, s.prefix)
	if !ok || len(digest) != keySize {
		return id, false
	}
	before, after, _ := strings.Cut(digest[:keySize-1], "{")
	copy(id[copy(id[:], before):], after)
	return id, s.key(id) == key
}
