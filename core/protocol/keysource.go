package protocol

import (
	"context"
	"encoding/hex"
	"errors"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/reprise-go/reprise/core/internal/syntax"
	"github.com/reprise-go/reprise/core/protocol/internal/canonical"
	"github.com/reprise-go/reprise/core/store"
)

// KeySource says where a request has its key (R48). The zero value is the header
// Idempotency-Key.
//
// A key of any source has the grammar and the length of one in a header. Beside its
// source, a request may have its key in the header: both must be the same, or the request
// is refused. So a client that sends the header is never run unprotected. The key in the
// header counts alone if the Content-Type says that the source cannot be read: a body
// that is not JSON for [KeyField], and a multipart form. Where the key must be that of a
// signed body, remove the field before.
//
// Sources other than [KeyHeader] and [KeyParam] read the body of every request of a keyed
// method, up to Limits.RequestBody, to find out whether it has a key.
//
// In a call of gRPC or Connect the metadata is the header. KeyField names a field of its
// message; KeyFunc and KeyContent have the encoded message for a body; and KeyParam finds
// nothing, because a call has no query.
type KeySource struct {
	names   []string // of header fields, the first of which the problems name; nil: the default
	origin  origin
	place   string // the pointer, the name of the parameter, or that of the function
	pointer canonical.Pointer
	badly   error // why there is no pointer
	find    KeyFinder
	window  time.Duration
}

// origin is the part of a request that has the key.
type origin uint8

const (
	ofHeader  origin = iota
	ofQuery          // a parameter
	ofMember         // of a body in JSON, or a field of a call's message
	ofFinder         // a KeyFinder
	ofContent        // all that a retry repeats
)

// A KeyFinder returns the key of a request, "" if it has none, such as the ID of a
// webhook's event. r.Body has been read and must not be touched; body has all of its
// bytes, and must be neither kept nor modified. A form that a layer outside parsed and
// did not put back is refused with 400 key-invalid instead, unless the header has the
// key. So is a request for which it returns an error, whose text must not have the key:
// it reaches the observer, and no client. A KeyFinder is safe for concurrent use, and
// returns the same for the same request. It does not replace the check of a signature,
// which belongs outside of the middleware.
type KeyFinder func(r *Request, body []byte) (key string, err error)

// KeyHeader returns the source of keys in the header field with this name, in any case.
// The aliases are other names under which a key is accepted; a request with two of the
// names is refused. [New] checks the names.
func KeyHeader(name string, aliases ...string) KeySource {
	return KeySource{names: append([]string{name}, aliases...)}
}

// KeyField returns the source of keys in the string that a JSON pointer (RFC 6901) names
// in the body, such as "/idempotency_key". The pointer goes through objects only. A body
// in which it leads into something else, one that is not JSON, and one that has the
// member twice are refused; one without the member has no key. [New] checks the pointer.
//
// In a call it names a string field of the message, such as "/request_id", by its name in
// the schema or in JSON, and goes through fields that are messages only. A message that
// has no such field, or in which it is not set, has no key: of a string without explicit
// presence, that is the empty one. Any other value there refuses the call.
func KeyField(pointer string) KeySource {
	parsed, err := canonical.ParsePointer(pointer)
	return KeySource{origin: ofMember, place: pointer, pointer: parsed, badly: err}
}

// KeyParam returns the source of keys in a query parameter. A request that has it twice
// is refused. The query is part of the fingerprint. [New] checks the name: 1 to 64 bytes
// of printable US-ASCII.
func KeyParam(name string) KeySource {
	return KeySource{origin: ofQuery, place: name}
}

// KeyFunc returns the source of keys that a function finds. name is a noun for problems
// and contracts, such as "event ID": 1 to 64 bytes of printable US-ASCII.
func KeyFunc(name string, find KeyFinder) KeySource {
	return KeySource{origin: ofFinder, place: name, find: find}
}

// KeyContent returns the source for clients that send no key: equal requests of one scope
// are one operation, for as long as the window, which is the policy's Retention. A later
// request with the same content is a new operation. Requests are equal if their
// fingerprint is, which is [CanonicalJSON] by default; [NoFingerprint] is refused, and so
// is a Horizon, which would never let the content run again. Multipart forms are equal if
// their parts are. Any other body in parts has another boundary in each request, and is
// refused without a key in the header. So is the scope of [ErrUnscoped], in which equal
// requests of two clients would be one operation: 403.
//
// The window bounds every promise about the content: AtMostOnce, too, holds no longer,
// and a request whose outcome is unknown runs again after it.
//
// A client that means to do the same thing twice within the window cannot. Whoever can
// guess a body can guess its key, too.
func KeyContent(window time.Duration) KeySource {
	return KeySource{origin: ofContent, window: window}
}

// Headers returns the names of the header fields that may have the key: the one that the
// problems name, and then its aliases.
func (k KeySource) Headers() []string {
	if k.names == nil {
		return []string{defaultHeader}
	}
	return slices.Clone(k.names)
}

// Param returns the name of the query parameter of [KeyParam], and "" for other sources.
func (k KeySource) Param() string {
	if k.origin != ofQuery {
		return ""
	}
	return k.place
}

// Field returns the JSON pointer of [KeyField], and "" for other sources.
func (k KeySource) Field() string {
	if k.origin != ofMember {
		return ""
	}
	return k.place
}

// Window returns the window of [KeyContent], and 0 for other sources.
func (k KeySource) Window() time.Duration { return k.window }

// String returns the source as a noun, such as "Idempotency-Key header".
func (k KeySource) String() string {
	switch k.origin {
	case ofQuery:
		return "query parameter " + k.place
	case ofMember:
		return "field " + k.place + " of the request body"
	case ofFinder:
		return k.place
	case ofContent:
		return "content of the request"
	default:
		return k.header()
	}
}

// header returns the header field that the problems name, as a noun.
func (k *KeySource) header() string { return k.Headers()[0] + " header" }

// word returns the noun with which the problems refer to a key.
func (k *KeySource) word() string {
	if k.origin == ofHeader {
		return k.Headers()[0]
	}
	return "key"
}

// readsBody reports whether the body may have the key.
func (k *KeySource) readsBody() bool { return k.origin >= ofMember }

// needsBody reports whether the source can be asked only once the body of a request is
// read. A call's message has fields before it is encoded.
func (k *KeySource) needsBody(req *Request) bool {
	return k.readsBody() && (k.origin != ofMember || !req.isCall())
}

// check returns [store.ErrInvalid] for the first invalid part.
func (k KeySource) check() error {
	for i, n := range k.names {
		same := func(other string) bool { return strings.EqualFold(n, other) }
		switch {
		case !syntax.ValidName(n):
			return invalid("Key", "%q is not a field name", n)
		case slices.ContainsFunc(k.names[:i], same):
			return invalid("Key", "%s is listed twice", n)
		}
	}
	named := k.place != "" && len(k.place) <= maxPlace && syntax.Printable(k.place)
	switch {
	case k.badly != nil:
		return invalid("Key", "KeyField: %v", k.badly)
	case k.origin == ofQuery && !named:
		return invalid("Key", "KeyParam: the name %q is not 1 to %d bytes of printable US-ASCII", k.place, maxPlace)
	case k.origin == ofFinder && !named:
		return invalid("Key", "KeyFunc: the name %q is not 1 to %d bytes of printable US-ASCII", k.place, maxPlace)
	case k.origin == ofFinder && k.find == nil:
		return invalid("Key", "KeyFunc: the function is nil")
	case k.origin == ofContent && (k.window < store.MinDuration || k.window > store.MaxDuration):
		return invalid("Key", "KeyContent: the window is %v, want %v to %v", k.window, store.MinDuration, store.MaxDuration)
	}
	return nil
}

// maxPlace bounds the names of parameters and functions, in bytes.
const maxPlace = 64

// misread returns why the source cannot read a body of the request's media type, if it
// cannot. It looks at the header only.
func (k *KeySource) misread(req *Request) error {
	switch {
	case k.origin == ofContent:
		return nil // its parts decide
	case k.readsBody() && isMultipart(req):
		return errKeyForm
	case k.origin == ofMember && !req.isCall() && !isJSON(req):
		return errKeyJSON
	default:
		return nil
	}
}

// sourceKey returns the key that the source of the policy, which is not a header, has for
// a request; body is nil for one that does not need it. The error is a [keyError], or
// that of a function.
func (g *Guard) sourceKey(req *Request, body []byte) (key string, found bool, err error) {
	k := &g.cfg.Key
	switch k.origin {
	case ofQuery:
		key, found, err = k.parameter(req.RawQuery)
	case ofMember:
		switch {
		case req.bytesGone():
			err = errKeyForm
		case req.isCall():
			key, found, err = req.inMessage(k.pointer)
		case len(body) > 0:
			if key, found, err = canonical.Find(body, k.pointer); err != nil {
				err = memberErrors[err]
			}
		}
	case ofFinder:
		if req.bytesGone() {
			return "", false, errKeyForm
		}
		key, err = g.ownKey(*req, req.forHandler(body))
		found = key != ""
	default:
		if hasUncomparedParts(req, body) {
			return "", false, errKeyParts
		}
		fp, err := g.fingerprint(req, "", body)
		return contentKey + hex.EncodeToString(fp[:]), true, err
	}
	if err != nil || !found {
		return "", false, err
	}
	key, err = keyGrammar{mode: Compat, max: g.grammar.max}.parse(key) // Strict is about the notation of a field
	return key, true, err
}

// errKeysDiffer is the error of a request with two keys that are not the same.
var errKeysDiffer = errors.New("the keys differ")

// agreed returns the key of a request that has inHeader in its header, or "": that of the
// source, if there is one, must be the same.
func (g *Guard) agreed(req *Request, body []byte, inHeader string) (key string, err error) {
	key, found, err := g.sourceKey(req, body)
	switch {
	case err != nil:
		return "", err
	case !found:
		return inHeader, nil
	case inHeader != "" && inHeader != key:
		return "", errKeysDiffer
	default:
		return key, nil
	}
}

// refuseSource refuses a request whose source of the key is wrong. It has inHeader in its
// header, or "".
func (g *Guard) refuseSource(ctx context.Context, req *Request, inHeader string, err error) Admission {
	k := &g.cfg.Key
	differ := errors.Is(err, errKeysDiffer)
	if err = withoutKey(err, inHeader); codeOf(err, "") != "" {
		err = withoutKey(err, "") // the source may have shown another key
	}
	switch code := codeOf(err, CodeKeyInvalid); {
	case code == CodeInternalError:
		return g.refuse(ctx, req, code, err)
	case differ:
		return g.refuseKey(ctx, req, k.header()+" and the "+k.String(), errKeyDiffers)
	default:
		return g.refuseKey(ctx, req, k.String(), err)
	}
}

// contentKey begins the keys of [KeyContent], which no client can send: a control byte
// keeps them apart from all others.
const contentKey = "\x00content:"

// ownKey is apart from sourceKey so that the request of other sources stays off the heap.
func (g *Guard) ownKey(req Request, body []byte) (key string, err error) {
	defer recovered("Config.Key", &err)
	key, err = g.cfg.Key.find(&req, body)
	return key, readable(err)
}

// parameter returns the decoded parameter of a query.
func (k *KeySource) parameter(query string) (value string, found bool, err error) {
	for query != "" {
		var pair string
		pair, query, _ = strings.Cut(query, "&")
		name, encoded, _ := strings.Cut(pair, "=")
		if name != k.place { // encoded in another way, or another parameter
			if decoded, err := url.QueryUnescape(name); err != nil || decoded != k.place {
				continue
			}
		}
		if found {
			return "", false, errKeyRepeated
		}
		if value, err = url.QueryUnescape(encoded); err != nil {
			return "", false, errKeyQuery
		}
		found = true
	}
	return value, found, nil
}

// memberErrors has the mistake of a client whose body has no readable key.
var memberErrors = map[error]keyError{
	canonical.ErrNotJSON: errKeyJSON, canonical.ErrNotObject: errKeyObject, canonical.ErrNotString: errKeyText, canonical.ErrRepeated: errKeyRepeated,
}
