package contract

import (
	"bytes"
	"fmt"
	"strings"
	"unicode"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/protocol"
)

// Markdown returns the page on which the API publishes its policy, as the draft of the
// header asks servers to do: for the people who write clients. Its bytes depend on the
// policy only. For another form give the Policy to your own template.
//
// Names and texts of the policy appear on the page as they are, with any characters; only
// Fingerprint may contain Markdown.
func (p Policy) Markdown() []byte {
	var b bytes.Buffer
	say := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	say("# Idempotent requests\n")
	switch {
	case p.Window > 0:
		say("A request is known by its content: one that repeats another within %s of its response is the same operation.", span(p.Window))
	case p.Source != "":
		say("A request is known by its key, the %s. Repeat it with the same key until you have a response.", escaped(p.Source))
	default:
		say("Send the header %s with a key of your own, and repeat the request with the same key until you have a response.", code(p.Header))
	}
	say("The operation runs once, and every retry gets its response.\n")
	p.requests(say)
	p.retries(say)
	p.kept(say)
	p.failures(say)
	p.fields(say)
	p.refusals(say)
	return b.Bytes()
}

type sayer func(format string, args ...any)

func (p *Policy) requests(say sayer) {
	say("## Requests\n")
	switch {
	case p.Window > 0:
		say("* %s requests need no key. For an operation that is to happen again within %s, send one of your own in the header %s.", escaped(joined(p.Methods)), span(p.Window), code(p.Header))
	case p.Required:
		say("* %s requests need a key.", escaped(joined(p.Methods)))
	default:
		say("* %s requests may have a key. Without one a request runs each time it arrives.", escaped(joined(p.Methods)))
	}
	if p.Selective {
		say("  Some requests are exempt.")
	}
	if len(p.Aliases) > 0 {
		say("* The key is also accepted as %s. Send one of these fields only.", codes(p.Aliases))
	}
	if p.Source != "" && p.Window == 0 {
		say("* The key is also accepted in the header %s. In a request with both, they must be the same.", code(p.Header))
	}
	say("* Use a new random key for each operation, such as a UUID, and store it with the operation before you send the first request.")
	if p.KeyMode == protocol.Strict {
		say("* A key is a string in quotes (RFC 9651) of 1 to %d characters of US-ASCII: %s.", p.MaxKeyLength, code(p.Header+`: "8e03978e-40d5-43dd-bc93-6894a57f9324"`))
	} else {
		say("* A key has 1 to %d characters: %s.", p.MaxKeyLength, code(p.Header+": 8e03978e-40d5-43dd-bc93-6894a57f9324"))
		say("  Letters, digits and `. _ ~ : + / = -` may stand as they are; with quotes (RFC 9651) a key may have every printable character of US-ASCII.")
	}
	limited := "a request with a key"
	if p.BodyKey {
		limited = "a request"
	}
	say("* The body of %s has at most %s.\n", limited, size(p.MaxRequestBody))
}

func (p *Policy) retries(say sayer) {
	say("## Retries\n")
	say("* A retry must have %s.", p.Fingerprint)
	if len(p.FingerprintHeaders) > 0 {
		say("  These request fields must be the same too: %s.", codes(p.FingerprintHeaders))
	}
	if len(p.FingerprintOmit) > 0 {
		say("  These parts of a JSON body (RFC 6901) are not compared, and a retry may change them: %s.", codes(p.FingerprintOmit))
	}
	say("  Another request with the same key is refused, and nothing runs.")
	if p.Endpoint == "" {
		say("* A key belongs to one operation: do not use it at another endpoint.")
	} else {
		say("* A key belongs to one endpoint (%s here): at another one it is another key.", code(p.Endpoint))
	}
	if p.Wait > 0 {
		say("* A retry that arrives while the first request runs waits up to %s for its response, and is then told to come back.", span(p.Wait))
	} else {
		say("* A retry that arrives while the first request runs is told to come back.")
	}
	say("* A retry after it gets the response of the first request: the same status, fields and body.\n")
}

func (p *Policy) kept(say sayer) {
	say("## What is kept, and for how long\n")
	if p.Horizon > 0 {
		say("* A response is kept for %s from the end of its request, and its key is remembered for %s longer.", span(p.Retention), span(p.Horizon))
		say("  In that time retries are refused with `%s`, and nothing runs. After it the key is new: a request with it runs.", protocol.CodeResultExpired)
	} else {
		say("* A response is kept for %s from the end of its request. After that its key is new: a request with it runs.", span(p.Retention))
	}
	if p.Expires {
		say("  The field `%s` says until when the response is kept.", protocol.FieldExpires)
	}
	if len(p.NotKept) > 0 {
		var ranges []string
		for _, r := range p.NotKept {
			ranges = append(ranges, r.String())
		}
		say("* Responses with these statuses are not kept, and the next request with the key runs: %s.", joined(ranges))
	}
	summary := "retries get `" + summaryBody + "` with the first status and fields, and `" + protocol.FieldBody + ": omitted`"
	switch {
	case p.MaxBlob > 0 && p.Oversize == protocol.Unavailable:
		say("* A body of more than %s, and one of more than %s that could not be stored, is not kept: its retries are refused with `%s`, and do not run.",
			size(p.MaxBlob), size(p.MaxResponseBody), protocol.CodeResultUnavailable)
	case p.Oversize == protocol.Unavailable:
		say("* A body of more than %s is not kept: its retries are refused with `%s`, and do not run.", size(p.MaxResponseBody), protocol.CodeResultUnavailable)
	case p.MaxBlob > 0:
		say("* Of a body of more than %s, and of one of more than %s that could not be stored, %s.", size(p.MaxBlob), size(p.MaxResponseBody), summary)
	default:
		say("* Of a body of more than %s, %s.", size(p.MaxResponseBody), summary)
	}
	switch {
	case p.KeepHeaders == nil:
	case len(p.KeepHeaders) == 0:
		say("* Of the response fields, replays have only the media type and the coding.")
	default:
		say("* Of the response fields, replays have the media type and the coding, and: %s.", codes(p.KeepHeaders))
	}
	say("")
}

func (p *Policy) failures(say sayer) {
	say("## Failures\n")
	switch {
	case p.Preset == reprise.AtMostOnce:
		say("* If the server fails while an operation runs, it is not started again: retries are refused with `%s` until somebody has found out what happened.", protocol.CodeOutcomeUnknown)
	case p.MaxAttempts > 0:
		say("* If the server fails while an operation runs, a retry runs it again, up to %d times in all. After that retries are refused with `%s`.", p.MaxAttempts, protocol.CodeOutcomeUnknown)
	default:
		say("* If the server fails while an operation runs, a retry runs it again.")
	}
	if p.FailOpen {
		say("* If the server cannot look keys up, it runs requests anyway, and marks the responses with `%s: unprotected`. A retry may run such an operation again.", protocol.FieldStatus)
	} else {
		say("* If the server cannot look keys up, it refuses requests that have one. Nothing runs.")
	}
	say("")
}

func (p *Policy) fields(say sayer) {
	say("## Response fields\n\n| field | values | meaning |\n|---|---|---|")
	for _, f := range p.markers() {
		values := f.values
		if values == nil {
			values = []string{"such as " + f.sample}
		}
		say("| `%s` | %s | %s |", f.name, strings.Join(values, ", "), escaped(f.description))
	}
	say("")
}

func (p *Policy) refusals(say sayer) {
	say("## Refusals\n")
	if p.OwnProblems {
		say("Refusals have the form of this API's errors.\n")
	} else {
		say("Refusals are problem documents (RFC 9457, `application/problem+json`). Branch on their member `code`.\n")
	}
	say("| code | status | retry with the same key | meaning |\n|---|---|---|---|")
	for _, problem := range p.Problems {
		retry := "no"
		switch {
		case problem.RetryAfter > 0:
			retry = "yes, after `Retry-After`"
		case problem.Retryable:
			retry = "yes"
		}
		say("| %s | %d | %s | %s |", strings.ReplaceAll(code(string(problem.Code)), "|", `\|`), problem.Status, retry, escaped(problem.Detail))
	}
}

// code returns text as a code span, which shows every character of it as it is. A table
// needs its pipes escaped on top of that.
func code(text string) string {
	text = withoutBreaks(text)
	fence := "`"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	if strings.Trim(text, " ") != text || strings.Trim(text, "`") != text {
		text = " " + text + " " // which shows no mark
	}
	return fence + text + fence
}

// codes lists names for a sentence, each as a code span.
func codes(names []string) string {
	spans := make([]string, len(names))
	for i, name := range names {
		spans[i] = code(name)
	}
	return joined(spans)
}

// escaped returns text so that Markdown and HTML show it as it is, in a table or a
// sentence.
func escaped(text string) string { return markup.Replace(withoutBreaks(text)) }

var markup = func() *strings.Replacer {
	var pairs []string
	for _, mark := range "\\`*_[]<>&|~$" {
		pairs = append(pairs, string(mark), `\`+string(mark))
	}
	return strings.NewReplacer(pairs...)
}()

// withoutBreaks returns text without line breaks and other control characters, which
// would end its sentence or its row.
func withoutBreaks(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == '\u2028' || r == '\u2029' {
			return ' '
		}
		return r
	}, text)
}
