package protocol

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	reprise "github.com/reprise-go/reprise/core"
)

// withheld stands in a record in the place of a description with the key in it.
const withheld = "(withheld: it contained the key)"

// description returns what the record of a request with a key tells operators about it.
func (g *Guard) description(ctx context.Context, req *Request, key string) string {
	if g.cfg.Describe == nil {
		return ""
	}
	text, err := g.ownDescription(ctx, *req)
	var panicked *panicError
	switch {
	case errors.As(err, &panicked):
		if holdsKey(fmt.Sprint(panicked.value), key) {
			panicked.value = withheld
		}
		g.report(ctx, reprise.Event{Kind: reprise.EventPanic, Err: err})
	case holdsKey(text, key):
		g.report(ctx, reprise.Event{Kind: reprise.EventDescription})
		return withheld
	}
	return text
}

func (g *Guard) ownDescription(ctx context.Context, req Request) (text string, err error) {
	defer recovered("Config.Describe", &err)
	return g.cfg.Describe(ctx, &req), nil
}

// quoted escapes a key as a quoted string of RFC 9651 has it.
var quoted = strings.NewReplacer(`\`, `\\`, `"`, `\"`)

// holdsKey reports whether a text has a key in it: decoded, or as the header or the query
// of its request may have it.
func holdsKey(text, key string) bool {
	if strings.Contains(text, key) || strings.Contains(text, quoted.Replace(key)) {
		return true
	}
	decoded, err := url.QueryUnescape(text)
	return err == nil && strings.Contains(decoded, key)
}
