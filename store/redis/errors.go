package repriseredis

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/redis/go-redis/v9"
	"github.com/reprise-go/reprise/core/store"
)

// failure is the class of a failed attempt to send a command.
type failure struct {
	class         error // a sentinel of the package reprise
	again         bool  // whether to repeat it soon
	moved         bool  // whether a cluster named another node
	unknownScript bool  // whether the server wants the source of the script
}

// replies classifies the errors that a server answers instead of executing a command, by
// their first word.
var replies = map[string]failure{
	"NOSCRIPT": {class: store.ErrUnavailable, again: true, unknownScript: true},

	// The server cannot execute it now.
	"READONLY":    {class: store.ErrUnavailable, again: true}, // it was demoted; a new connection finds the new primary
	"LOADING":     {class: store.ErrUnavailable, again: true},
	"MASTERDOWN":  {class: store.ErrUnavailable, again: true},
	"CLUSTERDOWN": {class: store.ErrUnavailable, again: true},
	"TRYAGAIN":    {class: store.ErrUnavailable, again: true},
	"MOVED":       {class: store.ErrUnavailable, again: true, moved: true},
	"ASK":         {class: store.ErrUnavailable, again: true, moved: true},
	"BUSY":        {class: store.ErrUnavailable},
	"MISCONF":     {class: store.ErrUnavailable},
	"NOREPLICAS":  {class: store.ErrUnavailable},

	// The server refuses it until an operator intervenes.
	"OOM":       {class: store.ErrFull},
	"WRONGTYPE": {class: store.ErrCorrupt},
	"NOAUTH":    {class: store.ErrMisconfigured},
	"WRONGPASS": {class: store.ErrMisconfigured},
	"NOPERM":    {class: store.ErrMisconfigured},
	"NOPROTO":   {class: store.ErrMisconfigured},
}

// plainReplies classifies errors that differ only in their text.
var plainReplies = []struct {
	text string
	failure
}{
	{"ERR Protocol error: invalid bulk length", failure{class: store.ErrFull}}, // proto-max-bulk-len
	{"ERR max number of clients reached", failure{class: store.ErrUnavailable, again: true}},
	{"ERR unknown command", failure{class: store.ErrMisconfigured}},
	{"ERR Error compiling script", failure{class: store.ErrMisconfigured}},
	{"ERR The user executing the script can't", failure{class: store.ErrMisconfigured}}, // Redis 7.0; before any write
	{"ERR ACL failure in script", failure{class: store.ErrMisconfigured}},               // newer
	{"ERR DB index is out of range", failure{class: store.ErrMisconfigured}},
	{"ERR SELECT is not allowed in cluster mode", failure{class: store.ErrMisconfigured}},
	{"ERR WAITAOF cannot be used", failure{class: store.ErrMisconfigured}},
}

// classify returns the class of the error of one attempt. When in doubt, it is
// [store.ErrUnknown]: the command may have been executed.
func classify(err error) failure {
	if errors.As(err, new(exhausted)) {
		return failure{class: store.ErrBusy}
	}
	if errors.As(err, new(unsent)) {
		return failure{class: store.ErrUnavailable, again: true}
	}
	if errors.As(err, new(tooLarge)) {
		return failure{class: store.ErrFull}
	}
	if v, ok := classifyReply(err); ok {
		return v
	}
	var dial *net.OpError
	if errors.As(err, &dial) && dial.Op == "dial" {
		return failure{class: store.ErrUnavailable, again: true}
	}
	switch {
	case errors.Is(err, redis.ErrClosed):
		return failure{class: store.ErrClosed}
	case errors.Is(err, redis.ErrPoolTimeout), errors.Is(err, redis.ErrPoolExhausted):
		return failure{class: store.ErrBusy}
	case contextEnded(err):
		return failure{class: store.ErrUnknown}
	}
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		return failure{class: store.ErrUnknown}
	}
	return broken
}

// broken is the failure of a command whose connection broke.
var broken = failure{class: store.ErrUnknown, again: true}

// classifyReply classifies an error that the server answered, and reports whether err is
// one.
func classifyReply(err error) (failure, bool) {
	var answer redis.Error
	if !errors.As(err, &answer) {
		return failure{}, false
	}
	text := answer.Error()
	word, _, _ := strings.Cut(text, " ")
	if v, ok := replies[word]; ok {
		return v, true
	}
	for _, p := range plainReplies {
		if strings.HasPrefix(text, p.text) {
			return p.failure, true
		}
	}
	return failure{class: store.ErrUnknown}, true
}

// errUnreadable is the error for a record that this release cannot read.
var errUnreadable = fail(store.ErrCorrupt, errors.New("the record has an unknown version or kind, is not a string, or was cut"))

// fail wraps cause once, as an error of class. A server that does not know a command
// answers with its arguments, which are left out: among them are a key and an owner.
func fail(class, cause error) error {
	text, _, _ := strings.Cut(cause.Error(), ", with args beginning with")
	return fmt.Errorf("%w: redis: %s", class, text) // one class an error, the cause is for people
}

// exhausted marks an error of a context that ended before anything was sent, while the
// call waited for a connection of the client or a place in a queue of the store.
type exhausted struct{ error }

func (e exhausted) Unwrap() error { return e.error }

func contextEnded(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// unsent marks an error from before anything was sent.
type unsent struct{ error }

func (e unsent) Unwrap() error { return e.error }
