package repriseredis

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/redis/go-redis/v9"
	"github.com/reprise-go/reprise/core"
)

// verdict is what became of one attempt to send a command.
type verdict struct {
	class error // a sentinel of the package reprise
	again bool  // whether to repeat it soon
}

// replies places what a server answers instead of executing a command, by the first word of the answer.
var replies = map[string]verdict{
	// The server is not able to, now.
	"READONLY":    {reprise.ErrUnavailable, true}, // it was demoted; a new connection finds its successor
	"LOADING":     {reprise.ErrUnavailable, true},
	"MASTERDOWN":  {reprise.ErrUnavailable, true},
	"CLUSTERDOWN": {reprise.ErrUnavailable, true},
	"TRYAGAIN":    {reprise.ErrUnavailable, true},
	"MOVED":       {reprise.ErrUnavailable, true},
	"ASK":         {reprise.ErrUnavailable, true},
	"BUSY":        {reprise.ErrUnavailable, false},
	"MISCONF":     {reprise.ErrUnavailable, false},
	"NOREPLICAS":  {reprise.ErrUnavailable, false},

	// It will not.
	"OOM":       {reprise.ErrFull, false},
	"WRONGTYPE": {reprise.ErrCorrupt, false},
	"NOAUTH":    {reprise.ErrMisconfigured, false},
	"WRONGPASS": {reprise.ErrMisconfigured, false},
	"NOPERM":    {reprise.ErrMisconfigured, false},
	"NOPROTO":   {reprise.ErrMisconfigured, false},
}

// plainReplies places answers that only their text tells apart.
var plainReplies = []struct {
	text string
	verdict
}{
	{"ERR max number of clients reached", verdict{reprise.ErrUnavailable, true}},
	{"ERR unknown command", verdict{reprise.ErrMisconfigured, false}},
	{"ERR Error compiling script", verdict{reprise.ErrMisconfigured, false}},
	{"ERR DB index is out of range", verdict{reprise.ErrMisconfigured, false}},
	{"ERR SELECT is not allowed in cluster mode", verdict{reprise.ErrMisconfigured, false}},
	{"ERR WAITAOF cannot be used", verdict{reprise.ErrMisconfigured, false}},
}

// judge places the error of one attempt. In doubt it may have been executed.
func judge(err error) verdict {
	if _, ok := errors.AsType[unsent](err); ok {
		return verdict{reprise.ErrUnavailable, true}
	}
	if v, ok := judgeReply(err); ok {
		return v
	}
	if dial, ok := errors.AsType[*net.OpError](err); ok && dial.Op == "dial" {
		return verdict{reprise.ErrUnavailable, true}
	}
	switch {
	case errors.Is(err, redis.ErrClosed):
		return verdict{reprise.ErrClosed, false}
	case errors.Is(err, redis.ErrPoolTimeout), errors.Is(err, redis.ErrPoolExhausted):
		return verdict{reprise.ErrUnavailable, false}
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return verdict{reprise.ErrUnknown, false}
	}
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() {
		return verdict{reprise.ErrUnknown, false}
	}
	return verdict{reprise.ErrUnknown, true} // a connection that broke
}

// judgeReply places an error that the server answered with, and says whether err is one.
func judgeReply(err error) (verdict, bool) {
	answer, ok := errors.AsType[redis.Error](err)
	if !ok {
		return verdict{}, false
	}
	text := answer.Error()
	word, _, _ := strings.Cut(text, " ")
	if v, ok := replies[word]; ok {
		return v, true
	}
	for _, p := range plainReplies {
		if strings.HasPrefix(text, p.text) {
			return p.verdict, true
		}
	}
	return verdict{reprise.ErrUnknown, false}, true
}

// isNoScript says that the server does not know the script, so nothing was executed.
func isNoScript(err error) bool { return redis.HasErrorPrefix(err, "NOSCRIPT") }

// fail wraps cause once, as a failure of class.
func fail(class, cause error) error {
	return fmt.Errorf("%w: redis: %v", class, cause) //nolint:errorlint // one class an error, the cause is for people
}
