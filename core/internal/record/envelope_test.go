package record

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"slices"
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

var (
	testSecret    = Secret{ID: "2026-11", Key: bytes.Repeat([]byte("2026-11!"), 32)}
	testSealedFor = SealedFor{ID: store.DeriveID("tenant", "", "key"), Fingerprint: store.Fingerprint{1, 2, 3}, Key: "key"}
)

// sealedSample returns a response and its envelope, whose head is in the clear.
func sealedSample(body []byte) (encoded, payload []byte) {
	encoded = Append(nil, &stored{Status: 201, Fields: sampleFields, Body: body, Annotation: "00-trace-01"})
	return encoded, Seal(nil, encoded, testSecret, true, &testSealedFor)
}

// An envelope is as long as it says, and has a nonce and a tag in any case.
func TestEnvelopeHasItsDeclaredLength(t *testing.T) {
	t.Parallel()
	_, payload := sealedSample(bytes.Repeat([]byte("a"), 1000))
	e, err := ParseEnvelope(payload)
	if err != nil || e.flags != envelopeHead {
		t.Fatalf("%+v, %v", e, err)
	}
	for n := range payload {
		if n == 0 {
			continue // which is no envelope
		}
		_, err := ParseEnvelope(payload[:n])
		if !errors.Is(err, errEnvelopeLength) {
			t.Errorf("%d of %d bytes: %v", n, len(payload), err)
		}
	}
	rest := uint32(e.size)
	for size, ok := range map[uint32]bool{0: false, rest - 1: false, rest: true, rest + 1: false, 1<<32 - 1: false} {
		changed := slices.Clone(payload)
		binary.BigEndian.PutUint32(changed[14:], size)
		if _, err := ParseEnvelope(changed); (err == nil) != ok {
			t.Errorf("a size of %d: %v", size, err)
		}
	}
	long := slices.Clone(payload)
	long[18] = MaxSecretID + 1
	if _, err := ParseEnvelope(long); !errors.Is(err, errEnvelopeLength) {
		t.Errorf("an ID of %d bytes: %v", long[18], err)
	}
}

// The head in the clear is the response without its body, or cannot be decoded.
func TestClearHeadIsTheResponseWithoutItsBody(t *testing.T) {
	t.Parallel()
	_, payload := sealedSample([]byte("body"))
	e := must(ParseEnvelope(payload))
	checkDecoded(t, e.ClearHead(), &stored{Status: 201, Fields: sampleFields, Annotation: "00-trace-01"})
	e.head = e.head[:headSize-1]
	if _, err := Decode[Field](e.ClearHead()); !errors.Is(err, store.ErrCorrupt) {
		t.Errorf("a head that is too short: %v", err)
	}
	e.head = nil
	if head := e.ClearHead(); head != nil {
		t.Errorf("no head is %x", head)
	}
}

// FuzzEnvelope opens anything. An envelope that opens was sealed here.
func FuzzEnvelope(f *testing.F) {
	for _, v := range sealedVectors(f) {
		payload := must(hex.DecodeString(v.Payload))
		f.Add(payload)
		f.Add(payload[:len(payload)/2])
	}
	sample, sealed := sealedSample([]byte("body"))
	f.Add(sealed)
	f.Fuzz(func(t *testing.T, payload []byte) {
		if !IsSealed(payload) {
			return
		}
		e, err := ParseEnvelope(payload)
		if err != nil {
			if !errors.Is(err, store.ErrCorrupt) {
				t.Fatalf("%v does not wrap ErrCorrupt", err)
			}
			return
		}
		if _, err := Decode[Field](e.ClearHead()); err != nil && !errors.Is(err, store.ErrCorrupt) {
			t.Fatalf("%v does not wrap ErrCorrupt", err)
		}
		encoded, err := e.Open(testSecret.Key, &testSealedFor)
		switch {
		case err != nil && !errors.Is(err, store.ErrCorrupt):
			t.Fatalf("%v does not wrap ErrCorrupt", err)
		case err == nil && !bytes.Equal(encoded, sample):
			t.Fatalf("opened %x, which was not sealed here, as %x", payload, encoded)
		}
	})
}
