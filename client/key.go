package repriseclient

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// NewKey returns a random key: a UUID of version 4, which has 122 random bits from
// [crypto/rand].
func NewKey() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails: it ends the program instead
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	h := hex.EncodeToString(b[:])
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

type contextKey struct{ name string }

var (
	keyOfContext  = &contextKey{"key"}
	callOfContext = &contextKey{"call"}
)

// WithKey returns a context whose keyed call carries key.
//
// A key names one operation. Where the operation is known before it is sent (a payment, a
// row of an outbox), its key belongs beside it: write the key down before the first
// attempt, in the transaction that decides the operation, and use that key for every
// attempt, including those of another process after a restart. A business identifier will
// do if it is never used for a second, different request; prefix it with the name of the
// operation ("refund-4711").
//
// Two different requests with one key are a mistake that services answer with 422, so do
// not share the context between them. Methods that are not keyed ignore it.
func WithKey(ctx context.Context, key string) context.Context {
	return context.WithValue(ctx, keyOfContext, key)
}

var (
	errTwoKeys     = errors.New("the context and the header have different keys; remove one")
	errManyLines   = errors.New("the header has several lines; a request has one key: remove all but one")
	errKeyEmpty    = errors.New("the key is empty")
	errKeyBytes    = errors.New("the key has bytes other than printable US-ASCII")
	errKeyBare     = errors.New("the service takes bare keys, and the key has spaces, commas, quotes or backslashes")
	errHeaderValue = errors.New("the header is neither a bare key nor a quoted string")
)

// key returns the caller's key of a call, the key to send, and the value of its header.
// The two keys differ only for another host to which a redirect leads. Errors contain
// none of them.
func (t *Transport) key(req *http.Request) (own, key, value string, err error) {
	own, value, err = t.ownKey(req)
	if err != nil || !leadsAway(req) {
		return own, own, value, err
	}
	key = keyFor(own, req.URL)
	return own, key, t.encode(key), nil
}

// ownKey returns the caller's key and the value of its header: from the context, from the
// header that the caller set, from the redirect that led here, or a new one.
func (t *Transport) ownKey(req *http.Request) (key, value string, err error) {
	key, fromContext := req.Context().Value(keyOfContext).(string)
	lines := req.Header.Values(t.service.Header)
	switch {
	case len(lines) > 1:
		return "", "", errManyLines
	case len(lines) == 1:
		value = strings.Trim(lines[0], " \t")
		set := value
		if !t.service.Bare { // there, quotes would be part of the key
			set, err = decode(value)
		}
		if err == nil {
			err = t.check(set)
		}
		if err == nil && fromContext && set != key {
			err = errTwoKeys
		}
		return set, value, err
	case fromContext:
	case callOf(req.Response) != nil: // of an http.Client that follows a redirect
		key = callOf(req.Response).key
	default:
		key = t.newKey()
	}
	if err := t.check(key); err != nil {
		return "", "", err
	}
	return key, t.encode(key), nil
}

// check reports why the service would refuse a key.
func (t *Transport) check(key string) error {
	if key == "" {
		return errKeyEmpty
	}
	if len(key) > t.service.MaxKey {
		return fmt.Errorf("the key has %d bytes, and the service takes %d", len(key), t.service.MaxKey)
	}
	for i := range len(key) {
		if key[i] < ' ' || key[i] > '~' {
			return errKeyBytes
		}
	}
	if t.service.Bare && strings.ContainsAny(key, " \",\\") {
		return errKeyBare
	}
	return nil
}

// encode returns the value of the header for a key that was checked.
func (t *Transport) encode(key string) string {
	if t.service.Bare {
		return key
	}
	return `"` + escaper.Replace(key) + `"`
}

var escaper = strings.NewReplacer(`\`, `\\`, `"`, `\"`)

// decode returns the key of a header's value: that of a structured-field string, without
// its parameters, and any other value as it is.
func decode(value string) (string, error) {
	rest, quoted := strings.CutPrefix(value, `"`)
	if !quoted {
		return value, nil
	}
	var key strings.Builder
	for i := 0; i < len(rest); i++ {
		switch rest[i] {
		case '"':
			if tail := rest[i+1:]; tail != "" && tail[0] != ';' {
				return "", errHeaderValue
			}
			return key.String(), nil
		case '\\':
			i++
			if i == len(rest) || (rest[i] != '"' && rest[i] != '\\') {
				return "", errHeaderValue
			}
		}
		key.WriteByte(rest[i])
	}
	return "", errHeaderValue
}
