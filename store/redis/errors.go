package repriseredis

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/redis/go-redis/v9"
	reprise "github.com/reprise-go/reprise/core"
)

// failure is what became of one attempt to send a command.
type failure struct {
	class         error // a sentinel of the package reprise
	again         bool  // whether to repeat it soon
	moved         bool  // whether a cluster named another node
	unknownScript bool  // whether the server wants the source of the script
}

// replies classifies the errors that a server answers instead of executing a command, by
// their first word.
var replies = map[string]failure{
	"NOSCRIPT": {class: reprise.ErrUnavailable, again: true, unknownScript: true},

	// The server cannot execute it now.
	"READONLY":    {class: reprise.ErrUnavailable, again: true}, // it was demoted; a new connection finds its successor
	"LOADING":     {class: reprise.ErrUnavailable, again: true},
	"MASTERDOWN":  {class: reprise.ErrUnavailable, again: true},
	"CLUSTERDOWN": {class: reprise.ErrUnavailable, again: true},
	"TRYAGAIN":    {class: reprise.ErrUnavailable, again: true},
	"MOVED":       {class: reprise.ErrUnavailable, again: true, moved: true},
	"ASK":         {class: reprise.ErrUnavailable, again: true, moved: true},
	"BUSY":        {class: reprise.ErrUnavailable},
	"MISCONF":     {class: reprise.ErrUnavailable},
	"NOREPLICAS":  {class: reprise.ErrUnavailable},

	// The server refuses it until somebody changes something.
	"OOM":       {class: reprise.ErrFull},
	"WRONGTYPE": {class: reprise.ErrCorrupt},
	"NOAUTH":    {class: reprise.ErrMisconfigured},
	"WRONGPASS": {class: reprise.ErrMisconfigured},
	"NOPERM":    {class: reprise.ErrMisconfigured},
	"NOPROTO":   {class: reprise.ErrMisconfigured},
}

// plainReplies classifies errors that differ only in their text.
var plainReplies = []struct {
	text string
	failure
}{
	{"ERR max number of clients reached", failure{class: reprise.ErrUnavailable, again: true}},
	{"ERR unknown command", failure{class: reprise.ErrMisconfigured}},
	{"ERR Error compiling script", failure{class: reprise.ErrMisconfigured}},
	{"ERR The user executing the script can't", failure{class: reprise.ErrMisconfigured}}, // Redis 7.0; before any write
	{"ERR ACL failure in script", failure{class: reprise.ErrMisconfigured}},               // newer
	{"ERR DB index is out of range", failure{class: reprise.ErrMisconfigured}},
	{"ERR SELECT is not allowed in cluster mode", failure{class: reprise.ErrMisconfigured}},
	{"ERR WAITAOF cannot be used", failure{class: reprise.ErrMisconfigured}},
}

// classify says what the error of one attempt means. In doubt the command may have been
// executed.
func classify(err error) failure {
	if errors.As(err, new(unsent)) {
		return failure{class: reprise.ErrUnavailable, again: true}
	}
	if v, ok := classifyReply(err); ok {
		return v
	}
	var dial *net.OpError
	if errors.As(err, &dial) && dial.Op == "dial" {
		return failure{class: reprise.ErrUnavailable, again: true}
	}
	switch {
	case errors.Is(err, redis.ErrClosed):
		return failure{class: reprise.ErrClosed}
	case errors.Is(err, redis.ErrPoolTimeout), errors.Is(err, redis.ErrPoolExhausted):
		return failure{class: reprise.ErrUnavailable}
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return failure{class: reprise.ErrUnknown}
	}
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		return failure{class: reprise.ErrUnknown}
	}
	return failure{class: reprise.ErrUnknown, again: true} // a connection that broke
}

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
	return failure{class: reprise.ErrUnknown}, true
}

// fail wraps cause once, as an error of class.
func fail(class, cause error) error {
	return fmt.Errorf("%w: redis: %v", class, cause) //nolint:errorlint // one class an error, the cause is for people
}

// unsent marks an error from before anything was sent.
type unsent struct{ error }

func (e unsent) Unwrap() error { return e.error }
