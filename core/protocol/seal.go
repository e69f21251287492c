package protocol

import (
	"fmt"
	"slices"
	"time"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/internal/record"
	"github.com/reprise-go/reprise/core/internal/syntax"
	"github.com/reprise-go/reprise/core/store"
)

// Sealing says how a guard encrypts the responses that records keep, so that a reader of
// the store, or of a copy of it, cannot see them. The zero value does not seal.
//
// A response is sealed with AES-256-GCM under a key of its operation, which is derived
// from the client's Idempotency-Key and from Secret. No store ever sees either. So only a
// request with the same key can get the response: an operator cannot read it.
//
// A guard reads responses that are not sealed, and those sealed with Secret or with one
// of OtherSecrets. See docs/guides/sealing.md for turning it on and for the rotation of
// secrets.
type Sealing struct {
	// Secret seals the responses that are recorded from now on. The default is none: no
	// response is sealed, and ClearHead, Strict and MaxAge are refused.
	Secret Secret

	// OtherSecrets open responses and seal none: former secrets, until the retention of
	// their responses has ended, and the next secret, which every process must have before
	// the first one seals with it.
	OtherSecrets []Secret

	// ClearHead leaves status, header, trailer and annotation readable to operators. The
	// body is sealed, and any change of the rest is detected.
	ClearHead bool

	// Strict answers record-corrupt to every response that is not sealed. It closes the way
	// for an attacker who can write to the store, and for an operator too, who can then
	// resolve a record only by forgetting it or with [Sealing.Seal]. Set it when the
	// retention of the responses that were recorded before sealing has ended.
	Strict bool

	// MaxAge answers record-corrupt to responses sealed longer ago, by the clocks of the
	// processes. It bounds how long a writer to the store can put back an old response of
	// the same operation. A response is sealed before it is completed, and its retention
	// counts from then: so MaxAge must be at least the Retention, plus the engine's
	// CompleteTimeout, Background.Age and Lease, plus a minute by which clocks may differ.
	// After an outage in which many completions waited for longer than Background.Age, a
	// replay may end that much earlier. A Horizon adds nothing to it, because no response is
	// replayed then. The default is no bound.
	MaxAge time.Duration
}

// Secret is a master secret, made by [NewSecret]. Printing it, or a policy that has it,
// shows its ID only.
type Secret struct{ held *record.Secret }

const (
	minSecret = 32
	maxSecret = 4096
)

// NewSecret returns a master secret of 32 to 4,096 bytes of full entropy, such as 32 from
// crypto/rand or from a secret manager. Its ID is kept in the clear in every record that
// is sealed with it: 1 to 32 bytes of printable US-ASCII, such as the month that it was
// made in. Never reuse an ID for another secret. The error wraps [store.ErrInvalid].
func NewSecret(id string, key []byte) (Secret, error) {
	switch {
	case id == "" || len(id) > record.MaxSecretID || !syntax.Printable(id):
		return Secret{}, fmt.Errorf("%w: NewSecret: the ID %q is not 1 to %d bytes of printable US-ASCII", store.ErrInvalid, id, record.MaxSecretID)
	case len(key) < minSecret || len(key) > maxSecret:
		return Secret{}, fmt.Errorf("%w: NewSecret: the secret %q has %d bytes, want %d to %d", store.ErrInvalid, id, len(key), minSecret, maxSecret)
	}
	return Secret{&record.Secret{ID: id, Key: slices.Clone(key)}}, nil
}

// ID returns the ID of the secret, and "" for none.
func (s Secret) ID() string {
	if s.held == nil {
		return ""
	}
	return s.held.ID
}

// String implements [fmt.Stringer]. It shows the ID only.
func (s Secret) String() string {
	if s.held == nil {
		return "no secret"
	}
	return fmt.Sprintf("secret %q", s.held.ID)
}

// GoString implements [fmt.GoStringer]. It shows the ID only.
func (s Secret) GoString() string { return s.String() }

// MarshalText implements [encoding.TextMarshaler]. It shows the ID only.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// secret returns the secret with the ID of an envelope, and false if there is none.
func (c *Sealing) secret(id string) (Secret, bool) {
	if id == c.Secret.ID() {
		return c.Secret, true
	}
	for _, s := range c.OtherSecrets {
		if s.ID() == id {
			return s, true
		}
	}
	return Secret{}, false
}

// on reports whether responses are sealed from now on.
func (c *Sealing) on() bool { return c.Secret.held != nil }

// check returns [store.ErrInvalid] for the first invalid field.
func (c *Sealing) check() error {
	switch {
	case !c.on() && c.ClearHead:
		return invalid("Seal.ClearHead", "is set without Secret, so nothing is sealed")
	case !c.on() && c.Strict:
		return invalid("Seal.Strict", "is set without Secret: this guard would not read what it writes")
	case !c.on() && c.MaxAge != 0:
		return invalid("Seal.MaxAge", "is set without Secret, so nothing is sealed")
	case c.MaxAge < 0:
		return invalid("Seal.MaxAge", "%v is negative", c.MaxAge)
	}
	for i, s := range c.OtherSecrets {
		same := func(other Secret) bool { return other.ID() == s.ID() }
		switch {
		case s.held == nil:
			return invalid("Seal.OtherSecrets", "one of them is empty: NewSecret makes a secret")
		case same(c.Secret) || slices.ContainsFunc(c.OtherSecrets[:i], same):
			return invalid("Seal.OtherSecrets", "the ID %q is that of two secrets", s.ID())
		}
	}
	return nil
}

// clocksDiffer is by how much the clocks of processes may differ for [Sealing].MaxAge. It
// covers the second to which an envelope rounds its time, too.
const clocksDiffer = time.Minute

// checkAge is check for MaxAge, where the retention, that of the policy or of the engine,
// is known.
func (c *Sealing) checkAge(retention time.Duration, engine *reprise.Config) error {
	least := retention + engine.CompleteTimeout + engine.Background.Age + engine.Lease + clocksDiffer
	if c.MaxAge > 0 && c.MaxAge < least {
		return invalid("Seal.MaxAge", "%v, want at least %v, or replays would end before their retention: the Retention of %v, "+
			"the engine's CompleteTimeout of %v, Background.Age of %v and Lease of %v, and %v for clocks that differ",
			c.MaxAge, least, retention, engine.CompleteTimeout, engine.Background.Age, engine.Lease, clocksDiffer)
	}
	return nil
}

// Why a policy does not open an envelope.
var (
	errEnvelopeAge = record.Corrupt("was sealed longer ago than Config.Seal.MaxAge")
	errNotSealed   = record.Corrupt("is not sealed, which Config.Seal.Strict refuses")
)

// appendSealed appends the envelope of an encoded response.
func (c *Sealing) appendSealed(dst, encoded []byte, who *record.SealedFor) []byte {
	return record.Seal(dst, encoded, *c.Secret.held, c.ClearHead, who)
}

// open returns the encoded response of a payload, which is the payload itself if that is
// not sealed. The error wraps [store.ErrCorrupt].
func (c *Sealing) open(payload []byte, who *record.SealedFor) ([]byte, error) {
	if !record.IsSealed(payload) {
		if c.Strict {
			return nil, errNotSealed
		}
		return payload, nil
	}
	e, secret, err := c.envelope(payload)
	if err != nil {
		return nil, err
	}
	return e.Open(secret.held.Key, who)
}

// envelope returns the envelope of a sealed payload and its secret, unless the policy
// refuses it whatever the key of the client. The error wraps [store.ErrCorrupt].
func (c *Sealing) envelope(payload []byte) (record.Envelope, Secret, error) {
	e, err := record.ParseEnvelope(payload)
	if err != nil {
		return e, Secret{}, err
	}
	secret, known := c.secret(e.Secret)
	switch {
	case !known:
		err = record.Corrupt(fmt.Sprintf("is sealed with the secret %q, which Config.Seal does not have", e.Secret))
	case c.MaxAge > 0 && time.Since(e.Time) > c.MaxAge:
		err = errEnvelopeAge
	}
	return e, secret, err
}

// Readable reports why a guard with this policy answers record-corrupt to a retry that
// finds this payload, whatever the key of its client, or nil if it does not: the payload
// is not sealed and the policy is Strict, or it is an envelope that the policy does not
// open. The error wraps [store.ErrCorrupt].
func (c Sealing) Readable(payload []byte) error {
	if record.IsSealed(payload) {
		_, _, err := c.envelope(payload)
		return err
	}
	_, err := c.open(payload, nil)
	return err
}

// Seal returns the envelope of a payload of package operate, which is not sealed: a guard
// with this policy replays it to the request with the client's Idempotency-Key, decoded,
// and with this ID and fingerprint. It is for operators who know that key, and for tests.
// The error wraps [store.ErrInvalid] if the policy is invalid or has no Secret, or if the
// payload is no response.
func (c Sealing) Seal(payload []byte, key string, id store.ID, fingerprint store.Fingerprint) ([]byte, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	if !c.on() {
		return nil, invalid("Seal.Secret", "is not set, so nothing is sealed")
	}
	if _, err := record.Decode[Field](payload); err != nil {
		return nil, fmt.Errorf("%w: Seal: %v", store.ErrInvalid, err) //nolint:errorlint // nothing is corrupt
	}
	return c.appendSealed(nil, payload, &record.SealedFor{ID: id, Fingerprint: fingerprint, Key: key}), nil
}

// Open returns the payload that was sealed for an operation (see [Sealing.Seal]), for
// callers who know the client's key and have the secret. A payload that is not sealed is
// returned as it is, unless the policy is Strict. The error wraps [store.ErrCorrupt] if
// it cannot be opened.
func (c Sealing) Open(payload []byte, key string, id store.ID, fingerprint store.Fingerprint) ([]byte, error) {
	return c.open(payload, &record.SealedFor{ID: id, Fingerprint: fingerprint, Key: key})
}
