package record

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"testing"

	"github.com/reprise-go/reprise/core/store"
)

// sealedVector is an envelope that an independent program made from
// docs/engineering/adr/0016-sealed-answers.md. A change of one makes the records of
// running deployments unreadable.
type sealedVector struct {
	Name, Scope, Endpoint, Key, Fingerprint, Secret, Payload, Encoded string

	SecretID  string `json:"secret_id"` // empty: of a form that was withdrawn before the first release
	ClearHead bool   `json:"clear_head"`
}

func sealedVectors(tb testing.TB) []sealedVector {
	tb.Helper()
	var list []sealedVector
	if err := json.Unmarshal(must(os.ReadFile("testdata/sealed.json")), &list); err != nil || len(list) == 0 {
		tb.Fatal(len(list), err)
	}
	return list
}

// must returns v where err is nil, and panics otherwise: for what a test needs before it
// tests.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// secret returns the secret and the operation of a vector.
func (v *sealedVector) secret() (Secret, SealedFor) {
	return Secret{v.SecretID, must(hex.DecodeString(v.Secret))}, SealedFor{
		ID: store.DeriveID(v.Scope, v.Endpoint, v.Key), Key: v.Key, Fingerprint: store.Fingerprint(must(hex.DecodeString(v.Fingerprint))),
	}
}

func TestSealedGoldenVectors(t *testing.T) {
	t.Parallel()
	for _, v := range sealedVectors(t) {
		secret, who := v.secret()
		payload, encoded := must(hex.DecodeString(v.Payload)), must(hex.DecodeString(v.Encoded))
		want, err := ParseEnvelope(payload)
		if v.SecretID == "" {
			if !errors.Is(err, store.ErrCorrupt) {
				t.Errorf("%s: read: %v", v.Name, err)
			}
			continue
		}
		if err != nil || want.Secret != v.SecretID {
			t.Errorf("%s: sealed with %q: %v", v.Name, want.Secret, err)
			continue
		}
		got, err := want.Open(secret.Key, &who)
		if err != nil || !bytes.Equal(got, encoded) {
			t.Errorf("%s: opened\n%x, want\n%x: %v", v.Name, got, encoded, err)
			continue
		}
		if _, err := Decode[Field](got); err != nil {
			t.Errorf("%s: %v", v.Name, err)
		}
		again := Seal(nil, encoded, secret, v.ClearHead, &who)
		// All but the time, the nonce and the bytes that depend on them is written as it was.
		copy(again[2:], payload[2:10])
		if !bytes.HasPrefix(again, want.start) {
			t.Errorf("%s: sealed again as\n%x, want\n%x", v.Name, again, payload)
		}
		if len(again) != len(payload) {
			t.Errorf("%s: sealed again in %d bytes, want %d", v.Name, len(again), len(payload))
		}
	}
}
