package repriseredis

import (
	"bytes"
	"context"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/redis/internal/record"
)

// validityQuestion asks, behind the two commands of a native claim, how long the record
// stays valid that the first one found:
//
//	PTTL key
//	GETRANGE key 0 55
//
// The four commands are not one step. The start of the record, which has its owner and
// its fence, says that the key still had the same record after its time to live was read:
// a completed record does not change.
type validityQuestion struct {
	left *redis.IntCmd
	head *redis.StringCmd
	args [2 + 4]any
}

var argTTL, argRange, argStart, argEnd any = "pttl", "getrange", 0, record.IdentitySize - 1

// ask adds the question to a native claim.
func (c *command) ask(ctx context.Context) {
	q := &validityQuestion{args: [...]any{argTTL, &c.key, argRange, &c.key, argStart, argEnd}}
	q.left, q.head = redis.NewIntCmd(ctx, q.args[:2]...), redis.NewStringCmd(ctx, q.args[2:]...)
	q.left.SetFirstKeyPos(1)
	q.head.SetFirstKeyPos(1)
	c.validity = q
}

// following yields the commands of Redis that c is, beyond the first.
func (c *command) following(yield func(redis.Cmder) bool) {
	if c.tail == nil || !yield(c.tail) || c.validity == nil {
		return
	}
	_ = yield(c.validity.left) && yield(c.validity.head)
}

// answer returns the answer to a claim that found the completed record r. It is not ok
// where the server refused to say how long the record stays valid, or another one may
// have taken its place meanwhile.
func (q *validityQuestion) answer(found []byte, r *record.Found) (result store.ClaimResult, ok bool) {
	ms, err := q.left.Result()
	head, headErr := q.head.Bytes()
	if err != nil || headErr != nil || ms < -1 || len(head) != record.IdentitySize || !bytes.Equal(head, found[:record.IdentitySize]) {
		return result, false
	}
	if ms < 0 { // the key was made to persist
		return r.Replay(store.MaxDuration, store.MaxDuration), true
	}
	// A key is there until the end of its last millisecond, and it is unknown how much is
	// left of this one.
	left := time.Duration(ms) * time.Millisecond
	return r.Replay(max(left, time.Nanosecond), left+time.Millisecond), true
}

// rewind prepares the question for another attempt.
func (q *validityQuestion) rewind() {
	q.left.SetErr(nil)
	q.left.SetVal(0)
	q.head.SetErr(nil)
	q.head.SetVal("")
}

// adopt gives q the answers of its clone.
func (q *validityQuestion) adopt(d *validityQuestion) {
	q.left.SetVal(d.left.Val())
	q.left.SetErr(d.left.Err())
	q.head.SetVal(d.head.Val())
	q.head.SetErr(d.head.Err())
}
