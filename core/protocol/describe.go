package protocol

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strconv"
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
	switch {
	case err != nil: // it panicked
		g.report(ctx, reprise.Event{Kind: EventPanic, Err: withoutKey(err, key)})
	case holdsKey(text, key):
		g.report(ctx, reprise.Event{Kind: EventDescription})
		return withheld
	}
	return text
}

func (g *Guard) ownDescription(ctx context.Context, req Request) (text string, err error) {
	defer recovered("Config.Describe", &err)
	return g.cfg.Describe(ctx, &req), nil
}

// withoutKey returns the error of a function of the policy, for the observer, without its
// text if that has the key in it. The key is empty where it is not known: then the value
// of a panic, which the function may have made of any part of the request, is left out.
func withoutKey(err error, key string) error {
	var panicked *panicError
	if _, ours := err.(keyError); ours { //nolint:errorlint // one that a function wrapped may have more in its text
		return err
	}
	switch {
	case errors.As(err, &panicked):
		if key == "" {
			panicked.value = withoutValue(panicked.value)
		} else if holdsKey(fmt.Sprint(panicked.value), key) {
			panicked.value = withheld
		}
	case key != "" && holdsKey(err.Error(), key):
		return errors.New(withheld)
	}
	return err
}

// withoutValue returns the type of a panic's value. An error of the runtime, such as that
// of a nil pointer, stays: it has nothing of a request.
func withoutValue(value any) any {
	if fault, ok := value.(runtime.Error); ok {
		return fault
	}
	return fmt.Sprintf("a %T, which may have the key in it", value)
}

// quoted escapes a key as a quoted string of RFC 9651 has it.
var quoted = strings.NewReplacer(`\`, `\\`, `"`, `\"`)

// leastWithheld is the length of the shortest key that is withheld, in bytes. A shorter
// one is in many texts that are not about it.
const leastWithheld = 8

// holdsKey reports whether a text has a key in it that is to be withheld: decoded, or as
// the header, the path or the query of its request may have it.
func holdsKey(text, key string) bool {
	if len(key) < leastWithheld {
		return false
	}
	return strings.Contains(text, key) || strings.Contains(text, quoted.Replace(key)) ||
		strings.Contains(unescaped(text), key) || strings.Contains(unescaped(strings.ReplaceAll(text, "+", " ")), key)
}

// unescaped decodes what is percent-encoded in a text. A "%" that encodes nothing stays.
func unescaped(text string) string {
	if !strings.Contains(text, "%") {
		return text
	}
	decoded := make([]byte, 0, len(text))
	for i := 0; i < len(text); i++ {
		c := text[i]
		if c == '%' && i+2 < len(text) {
			if n, err := strconv.ParseUint(text[i+1:i+3], 16, 8); err == nil {
				c, i = byte(n), i+2
			}
		}
		decoded = append(decoded, c)
	}
	return string(decoded)
}
