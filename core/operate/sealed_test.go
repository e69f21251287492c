package operate_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/reprise-go/reprise/core/internal/record"
	"github.com/reprise-go/reprise/core/operate"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/store"
)

// sealed returns the envelope of an encoded response, for the key "k".
func sealed(tb testing.TB, by protocol.Sealing, encoded []byte) []byte {
	tb.Helper()
	by.Secret = secret(tb, "2026-11")
	return must(by.Seal(encoded, "k", store.DeriveID("tenant", "", "k"), store.Fingerprint{1}))
}

func TestDecodeShowsOfASealedResponseWhatIsInTheClear(t *testing.T) {
	t.Parallel()
	r := protocol.Response{
		Status: 201, Header: protocol.NewHeader(protocol.Field{Name: "X-Private", Value: "a header of the answer"}), Body: []byte("a private body"),
	}
	encoded := must(operate.Encode(r))
	for _, clear := range []bool{false, true} {
		shown, err := operate.Decode(sealed(t, protocol.Sealing{ClearHead: clear}, encoded))
		kind, _ := shown.Header.Get("X-Private")
		if !errors.Is(err, operate.ErrSealed) || errors.Is(err, store.ErrCorrupt) || shown.Body != nil || (shown.Status == 201) != clear || (kind != "") != clear {
			t.Errorf("a clear head %t: an operator sees %+v, %v", clear, shown, err)
		}
	}
}

// A response without fields, whose head is as short as it can be, is shown as well.
func TestDecodeShowsAClearHeadWithoutFields(t *testing.T) {
	t.Parallel()
	encoded := must(operate.Encode(protocol.Response{Status: 204}))
	if shown, err := operate.Decode(sealed(t, protocol.Sealing{ClearHead: true}, encoded)); shown.Status != 204 || !errors.Is(err, operate.ErrSealed) {
		t.Errorf("an operator sees %+v, %v", shown, err)
	}
}

func TestAnnotationCanBeReadWhereTheHeadIsInTheClear(t *testing.T) {
	t.Parallel()
	encoded := record.Append(nil, &record.Response[record.Field]{Status: 200, Body: []byte("body"), Annotation: "00-trace-01"})
	for clear, want := range map[bool]string{true: "00-trace-01", false: ""} {
		if got := operate.Annotation(sealed(t, protocol.Sealing{ClearHead: clear}, encoded)); got != want {
			t.Errorf("a clear head %t: %q, want %q", clear, got, want)
		}
	}
}

// FuzzDecode decodes any payload, sealed or not: the error says whether it is corrupt or
// has no whole response, and nothing sealed is shown.
func FuzzDecode(f *testing.F) {
	encoded := must(operate.Encode(protocol.Response{
		Status: 201, Header: protocol.NewHeader(protocol.Field{Name: "Content-Type", Value: "text/plain"}), Body: []byte("body"),
	}))
	envelope := sealed(f, protocol.Sealing{ClearHead: true}, encoded)
	f.Add(encoded, uint(0), uint8(0))
	f.Add(envelope, uint(0), uint8(0))
	f.Add(envelope, uint(1), uint8(3))
	f.Add(envelope[:len(envelope)/2], uint(10), uint8(0))
	f.Add(envelope, uint(19+len("2026-11")), uint8(0xff)) // a head that cannot be read
	f.Add(sealed(f, protocol.Sealing{}, encoded), uint(0), uint8(0))
	f.Fuzz(func(t *testing.T, payload []byte, at uint, flip uint8) {
		if len(payload) > 0 {
			payload = slices.Clone(payload)
			payload[at%uint(len(payload))] ^= flip
		}
		r, err := operate.Decode(payload)
		known := errors.Is(err, operate.ErrSealed) || errors.Is(err, operate.ErrBodyOmitted) || errors.Is(err, operate.ErrResultUnavailable) ||
			errors.As(err, new(*operate.OffloadedError))
		if err != nil && known == errors.Is(err, store.ErrCorrupt) || errors.Is(err, operate.ErrSealed) && r.Body != nil {
			t.Fatalf("%+v, %v", r, err)
		}
		_ = operate.Annotation(payload)
	})
}

// An operator who knows the client's key seals what the guard replays. What a guard would
// refuse is refused here.
func TestSealChecksItsPolicyAndItsPayload(t *testing.T) {
	t.Parallel()
	id := store.DeriveID("tenant", "", "k")
	good := protocol.Response{Status: 201, Body: []byte("body")}
	encoded := must(operate.Encode(good))
	by := protocol.Sealing{Secret: secret(t, "2026-11")}
	for name, c := range map[string]struct {
		by      protocol.Sealing
		payload []byte
	}{
		"no payload":               {by, nil},
		"a payload of another use": {by, []byte(`{"id":7}`)},
		"a sealed payload":         {by, sealed(t, protocol.Sealing{}, encoded)},
		"a policy without secret":  {protocol.Sealing{}, encoded},
		"an invalid policy":        {protocol.Sealing{Strict: true}, encoded},
	} {
		if payload, err := c.by.Seal(c.payload, "k", id, store.Fingerprint{}); payload != nil || !errors.Is(err, store.ErrInvalid) || errors.Is(err, store.ErrCorrupt) {
			t.Errorf("%s: %d bytes, %v", name, len(payload), err)
		}
	}
	payload := must(by.Seal(encoded, "k", id, store.Fingerprint{}))
	opened := must(by.Open(payload, "k", id, store.Fingerprint{}))
	if got, err := operate.Decode(opened); err != nil || !sameResponse(got, good) {
		t.Errorf("opened %+v, %v", got, err)
	}
	if _, err := by.Open(payload, "another", id, store.Fingerprint{}); !errors.Is(err, store.ErrCorrupt) {
		t.Errorf("opened with another key: %v", err)
	}
}
