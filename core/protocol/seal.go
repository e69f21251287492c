package protocol

import (
	"fmt"
	"slices"
	"time"

	"github.com/reprise-go/reprise/core/store"
)

// Sealing says how a guard encrypts the responses that records keep, so that who reads
// the store, or a copy of it, learns nothing of them. The zero value seals nothing.
//
// A response is sealed with AES-256-GCM under a key of its operation, which is derived
// from the client's Idempotency-Key and from Secret. No store ever has either of the two.
// So only a request with the same key can have the response: an operator cannot read it.
//
// A guard reads what is not sealed, and what was sealed with Secret or with one of
// OtherSecrets. See docs/sealing.md for turning it on and for the rotation of secrets.
type Sealing struct {
	// Secret seals the responses that are recorded from now on. Without it nothing is
	// sealed, and ClearHead, Strict and MaxAge are refused.
	Secret Secret

	// OtherSecrets only open responses: secrets of before, until the retention of what
	// they sealed has ended, and the next one, which every process must have before the
	// first one seals with it.
	OtherSecrets []Secret

	// ClearHead leaves status, header, trailer and annotation readable for operators. The
	// body is sealed, and nothing of the rest can be changed without notice.
	ClearHead bool

	// Strict answers record-corrupt to every response that is not sealed with a secret. It
	// closes the way for somebody
	// who can write to the store, and closes it for an operator too, who can then resolve
	// a record only by forgetting it or with [Sealing.SealResponse]. Set it when the
	// retention of what was recorded before sealing has ended.
	Strict bool

	// MaxAge answers record-corrupt to what was sealed longer ago, by the clocks of the
	// processes. It bounds how long somebody who can write to the store can put an old
	// response of the same operation back. It is at least the Retention, which a sealed
	// response otherwise outlives, plus what the clocks differ by. Zero is no bound.
	MaxAge time.Duration
}

// Secret is a master secret, made by [NewSecret]. Printing it, or a policy that has it,
// shows its ID only.
type Secret struct{ held *heldSecret }

type heldSecret struct {
	id  string
	key []byte
}

const (
	maxSecretID = 32
	minSecret   = 32
	maxSecret   = 4096
)

// NewSecret returns a master secret of 32 to 4,096 bytes of full entropy, such as 32 from
// crypto/rand, as a vault keeps them. Its ID is kept in the clear in every record that is
// sealed with it: 1 to 32 bytes of printable US-ASCII, such as the month that it was made
// in. An ID is never used for a second secret. The error wraps [store.ErrInvalid].
func NewSecret(id string, key []byte) (Secret, error) {
	switch {
	case id == "" || len(id) > maxSecretID || !printable(id):
		return Secret{}, fmt.Errorf("%w: NewSecret: the ID %q is not 1 to %d bytes of printable US-ASCII", store.ErrInvalid, id, maxSecretID)
	case len(key) < minSecret || len(key) > maxSecret:
		return Secret{}, fmt.Errorf("%w: NewSecret: the secret %q has %d bytes, want %d to %d", store.ErrInvalid, id, len(key), minSecret, maxSecret)
	}
	return Secret{&heldSecret{id: id, key: slices.Clone(key)}}, nil
}

// ID returns the ID of the secret, and "" for none.
func (s Secret) ID() string {
	if s.held == nil {
		return ""
	}
	return s.held.id
}

// String implements [fmt.Stringer]. It shows the ID only.
func (s Secret) String() string {
	if s.held == nil {
		return "no secret"
	}
	return fmt.Sprintf("secret %q", s.held.id)
}

// GoString implements [fmt.GoStringer]. It shows the ID only.
func (s Secret) GoString() string { return s.String() }

// MarshalText implements [encoding.TextMarshaler]. It shows the ID only.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// bytes returns the secret, and nil for none.
func (s Secret) bytes() []byte {
	if s.held == nil {
		return nil
	}
	return s.held.key
}

// secret returns the secret with the ID of an envelope, and false if there is none.
func (c *Sealing) secret(id string) (Secret, bool) {
	switch id {
	case "":
		return Secret{}, true
	case c.Secret.ID():
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

// checkAge is check for MaxAge, where the retention is known: that of the policy, or of
// the engine.
func (c *Sealing) checkAge(retention time.Duration) error {
	if c.MaxAge > 0 && c.MaxAge < retention {
		return invalid("Seal.MaxAge", "%v is shorter than the Retention of %v: replays would end before it", c.MaxAge, retention)
	}
	return nil
}
