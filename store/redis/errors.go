package repriseredis

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"
	"github.com/reprise-go/reprise/core/store"
)

// failure is the class of a failed attempt to send a command.
type failure struct {
	class         error // a sentinel of the package reprise
	again         bool  // whether to repeat it soon
	unknownScript bool  // whether the server wants the source of the script
}

// The failures that more than one place finds.
var (
	// broken is the failure of a command whose connection broke.
	broken = failure{class: store.ErrUnknown, again: true}

	// unsent is the failure of a command that was not executed.
	unsent = failure{class: store.ErrUnavailable, again: true}

	// exhausted is the failure of a call whose time ended before anything was sent, while it
	// waited for a connection of the client or a place in a queue of the store.
	exhausted = failure{class: store.ErrBusy}

	full          = failure{class: store.ErrFull}
	misconfigures = failure{class: store.ErrMisconfigured}
)

// replies classifies the errors that a server answers instead of executing a command, by
// their start.
var replies = []struct {
	failure
	starts []string
}{
	{failure{class: store.ErrUnavailable, again: true, unknownScript: true}, []string{"NOSCRIPT"}},

	// The server cannot execute it now. One that was demoted is READONLY: a new connection
	// finds the new primary.
	{unsent, []string{"MOVED", "ASK", "READONLY", "ERR WAIT cannot be used with replica", "ERR WAITAOF cannot be used with replica", "LOADING", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN", "ERR max number of clients reached"}},
	{failure{class: store.ErrUnavailable}, []string{"BUSY ", "MISCONF", "NOREPLICAS"}},

	// The server refuses it until an operator intervenes.
	{full, []string{"OOM", "ERR Protocol error: invalid bulk length"}}, // the latter for proto-max-bulk-len
	{failure{class: store.ErrCorrupt}, []string{"WRONGTYPE"}},
	{misconfigures, []string{
		"NOAUTH", "WRONGPASS", "NOPERM", "NOPROTO", "ERR unknown command", "ERR Error compiling script",
		"ERR The user executing the script can't", // Redis 7.0; before any write
		"ERR ACL failure in script",               // newer
		"ERR DB index is out of range", "ERR SELECT is not allowed in cluster mode", "ERR WAITAOF cannot be used",
	}},
}

// special is an error whose failure is known where it arises.
type special struct {
	error
	failure
}

func (s special) Unwrap() error { return s.error }

// classify returns the class of the error of one attempt. When in doubt, it is
// [store.ErrUnknown]: the command may have been executed.
func classify(err error) failure {
	var special special
	var answer redis.Error
	var dial *net.OpError
	var timeout net.Error
	switch {
	case errors.As(err, &special):
		return special.failure
	case errors.As(err, &answer):
		return classifyReply(answer.Error())
	case errors.As(err, &dial) && dial.Op == "dial":
		return unsent
	case errors.Is(err, redis.ErrClosed):
		return failure{class: store.ErrClosed}
	case errors.Is(err, redis.ErrPoolTimeout), errors.Is(err, redis.ErrPoolExhausted):
		return exhausted
	case errors.Is(err, context.Canceled), errors.As(err, &timeout) && timeout.Timeout(): // also of a deadline
		return failure{class: store.ErrUnknown}
	}
	return broken
}

// classifyReply classifies the text of an error that the server answered.
func classifyReply(text string) failure {
	for _, r := range replies {
		if slices.ContainsFunc(r.starts, func(start string) bool { return strings.HasPrefix(text, start) }) {
			return r.failure
		}
	}
	return failure{class: store.ErrUnknown}
}

var (
	// errUnreadable is the error for a record that this release cannot read.
	errUnreadable = fail(store.ErrCorrupt, errors.New("the record has an unknown version or kind, is not a string, or was cut"))

	// errUnexpected is the error for an answer that a script never gives.
	errUnexpected = fail(store.ErrUnknown, errors.New("unexpected answer"))
)

// fail wraps cause once, as an error of class. A server that does not know a command
// answers with its arguments, which are left out: among them are a key and an owner.
func fail(class, cause error) error {
	text, _, _ := strings.Cut(cause.Error(), ", with args beginning with")
	return fmt.Errorf("%w: redis: %s", class, text) // one class an error, the cause is for people
}

// readError is the error of a request that writes no record. Whether such a request was
// executed makes no difference, so its outcome is never unknown.
func readError(err error) error {
	class := classify(err).class
	if errors.Is(class, store.ErrUnknown) {
		class = store.ErrUnavailable
	}
	return fail(class, err)
}
