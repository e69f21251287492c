package protocol

import (
	"strings"

	"github.com/dunglas/httpsfv"

	"github.com/reprise-go/reprise/core/internal/syntax"
	"github.com/reprise-go/reprise/core/store"
)

// KeyMode says which forms of a key are accepted.
type KeyMode uint8

// The modes. In both, a value that starts with a quote is a String of RFC 9651, and two
// notations of one string are the same key.
const (
	// Compat also accepts a bare value of letters, digits and . _ ~ : + / = - only, as most
	// clients send it. It is the same key as its quoted form.
	Compat KeyMode = iota

	// Strict accepts strings only, as the draft of the header requires.
	Strict
)

// The range of Config.Limits.Key, in bytes of the decoded key. A UUID has 36.
const (
	minKeyLimit     = 36
	defaultKeyLimit = 255
)

// maxKeyParameters bounds the parameters after a key, which are checked for syntax and
// then ignored.
const maxKeyParameters = 1024

// keyError describes the mistake of a key, as the end of a sentence that begins with its
// place, such as "The Idempotency-Key header …". It is a constant without input of the
// client.
type keyError string

func (e keyError) Error() string { return "reprise: the key " + string(e) }

// Unwrap makes a keyError match [store.ErrInvalid].
func (keyError) Unwrap() error { return store.ErrInvalid }

const (
	errKeyEmpty    keyError = "is empty"
	errKeyTooLong  keyError = "is too long"
	errKeyBytes    keyError = "contains a control character or a byte that is not US-ASCII"
	errKeyBare     keyError = "is neither a quoted string nor made of letters, digits and . _ ~ : + / = - only"
	errKeyUnquoted keyError = "is not a quoted string (RFC 9651)"
	errKeyString   keyError = "is not one well-formed quoted string (RFC 9651)"
	errKeyRepeated keyError = "appears more than once"

	errKeyQuery   keyError = "is not encoded as the value of a query parameter"
	errKeyJSON    keyError = "cannot be read: the body is not JSON, or can be read in more than one way"
	errKeyObject  keyError = "cannot be read: a value on the way to it is not an object"
	errKeyText    keyError = "is not a string"
	errKeyForm    keyError = "cannot be read: the body is a multipart form, or was parsed as a form before"
	errKeyParts   keyError = "cannot be compared: the body has a boundary, and is not a well-formed multipart form"
	errKeyOwn     keyError = "cannot be read"
	errKeyDiffers keyError = "are not the same key"
)

// ParseKey returns the decoded key of the value of a header field, in quotes or bare, as
// a guard with [Compat] and the longest keys reads it: the key of a person who pastes a
// log or a transcript. The error wraps [store.ErrInvalid] and does not have the key.
func ParseKey(value string) (string, error) {
	return keyGrammar{mode: Compat, max: maxKeyLength}.parse(value)
}

// keyGrammar reads keys.
type keyGrammar struct {
	mode KeyMode
	max  int // the longest decoded key, in bytes
}

// parse returns the decoded key of one field line (R2 to R6, as far as they concern a
// single line). The error is a [keyError]. The key may be a part of line, so a caller
// that keeps it longer than the request copies it. A bare key, and a quoted one without
// escapes and parameters, costs no allocation.
func (g keyGrammar) parse(line string) (key string, err error) {
	line = syntax.TrimSpace(line)
	if line == "" {
		return "", errKeyEmpty
	}
	if len(line) > 2*g.max+maxKeyParameters {
		return "", errKeyTooLong
	}
	for i := range len(line) {
		if line[i] < ' ' || line[i] > '~' {
			return "", errKeyBytes
		}
	}
	switch {
	case line[0] == '"':
		key, err = parseString(line)
	case g.mode == Strict:
		return "", errKeyUnquoted
	case !bareKeyBytes.HaveAll(line):
		return "", errKeyBare
	default:
		key = line
	}
	if err != nil {
		return "", err
	}
	if key == "" {
		return "", errKeyEmpty
	}
	if len(key) > g.max {
		return "", errKeyTooLong
	}
	return key, nil
}

// parseString decodes a String with its parameters. The bytes of line are printable
// US-ASCII, and the first is a quote.
func parseString(line string) (string, error) {
	if inner := line[1:]; strings.IndexByte(inner, '"') == len(inner)-1 && strings.IndexByte(inner, '\\') < 0 && inner != "" {
		return inner[:len(inner)-1], nil // no escapes to decode
	}
	item, err := httpsfv.UnmarshalItem([]string{line})
	if err != nil {
		return "", errKeyString // the parser's own error quotes the client's bytes
	}
	key, ok := item.Value.(string)
	if !ok {
		return "", errKeyString
	}
	return key, nil
}

// bareKeyBytes are those of the keys that clients send without quotes. The tokens of RFC
// 9651 would not do: a bare UUID is a token only if its first digit is a letter.
var bareKeyBytes = syntax.NewByteSet("._~:+/=-")
