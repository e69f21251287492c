package protocol

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/internal/record"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/store"
)

const testSealKey = "8e03978e-40d5-43dd-bc93-6894a57f9324"

var testSealedFor = record.SealedFor{
	ID: store.DeriveID("tenant", "", testSealKey), Fingerprint: store.Fingerprint{1, 2, 3}, Key: testSealKey,
}

func testSecret(tb testing.TB, id string) Secret {
	tb.Helper()
	return must(NewSecret(id, bytes.Repeat([]byte(id+"!"), 32)))
}

// sealedSample returns a response and its envelope.
func sealedSample(c *Sealing, body []byte) (encoded, payload []byte) {
	s := stored{Status: 201, Fields: []Field{{Name: "Content-Type", Value: "text/plain"}, {Name: "X-Private", Value: "a header of the answer"}}, Body: body}
	encoded = record.Append(nil, &s)
	return encoded, c.appendSealed(nil, encoded, &testSealedFor)
}

func TestSealedResponseIsReplayedAndHidden(t *testing.T) {
	t.Parallel()
	secret := testSecret(t, "2026-11")
	body := bytes.Repeat([]byte("the account of Jane Doe "), 200)
	for name, c := range map[string]Sealing{
		"secret":     {Secret: secret},
		"clear head": {Secret: secret, ClearHead: true},
	} {
		encoded, payload := sealedSample(&c, body)
		got, err := c.open(payload, &testSealedFor)
		if err != nil || !bytes.Equal(got, encoded) {
			t.Errorf("%s: %v", name, err)
		}
		_, again := sealedSample(&c, body)
		if bytes.Equal(again[len(again)-64:], payload[len(payload)-64:]) {
			t.Errorf("%s: the same response is sealed twice in the same way", name)
		}
		for _, private := range []string{"Jane Doe", testSealKey, string(secret.held.Key), "a header of"} {
			if bytes.Contains(payload, []byte(private)) && !(c.ClearHead && private == "a header of") {
				t.Errorf("%s: %q is in the payload", name, private)
			}
		}
		opened, err := c.Open(payload, testSealKey, testSealedFor.ID, testSealedFor.Fingerprint)
		if err != nil || !bytes.Equal(opened, encoded) {
			t.Errorf("%s: opened %d bytes, %v", name, len(opened), err)
		}
	}
}

// A modified envelope, or one of another operation, is never served.
func TestSealedResponseOfAnotherIsCorrupt(t *testing.T) {
	t.Parallel()
	secret, other := testSecret(t, "a"), testSecret(t, "b")
	c := Sealing{Secret: secret, ClearHead: true}
	encoded, payload := sealedSample(&c, []byte("body"))
	impostor := must(NewSecret("a", bytes.Repeat([]byte("z"), 32)))
	old := Sealing{Secret: secret, MaxAge: time.Hour}
	aged := slices.Clone(payload)
	binary.BigEndian.PutUint64(aged[2:], uint64(time.Now().Add(-2*time.Hour).Unix()))

	who := func(change func(*record.SealedFor)) *record.SealedFor {
		w := testSealedFor
		change(&w)
		return &w
	}
	for name, x := range map[string]struct {
		by      Sealing
		who     *record.SealedFor
		payload []byte
		says    string
	}{
		"another ID":             {c, who(func(w *record.SealedFor) { w.ID[0]++ }), payload, "cannot be opened"},
		"another fingerprint":    {c, who(func(w *record.SealedFor) { w.Fingerprint[31]++ }), payload, "cannot be opened"},
		"another key":            {c, who(func(w *record.SealedFor) { w.Key += "0" }), payload, "cannot be opened"},
		"another secret":         {Sealing{Secret: impostor}, &testSealedFor, payload, "cannot be opened"},
		"an unknown secret":      {Sealing{Secret: other}, &testSealedFor, payload, `the secret "a", which Config.Seal does not have`},
		"no secret":              {Sealing{}, &testSealedFor, payload, `the secret "a", which Config.Seal does not have`},
		"downgraded":             {Sealing{Strict: true}, &testSealedFor, encoded, "is not sealed"},
		"without a secret":       {c, &testSealedFor, append(append(slices.Clone(payload[:18]), 0), payload[20:]...), "length"},
		"of long ago":            {old, &testSealedFor, aged, "longer ago than"},
		"of long ago, unnoticed": {c, &testSealedFor, aged, "cannot be opened"},
		"a later version":        {c, &testSealedFor, append([]byte{0x82}, payload[1:]...), "a version"},
		"a flag":                 {c, &testSealedFor, append([]byte{0x81, 4}, payload[2:]...), "flags"},
		"a reserved flag":        {c, &testSealedFor, append([]byte{0x81, 3}, payload[2:]...), "flags"},
		"the version alone":      {c, &testSealedFor, []byte{0x81}, "length"},
	} {
		got, err := x.by.open(x.payload, x.who)
		if !errors.Is(err, store.ErrCorrupt) || got != nil || !strings.Contains(err.Error(), x.says) {
			t.Errorf("%s: %d bytes, %v; want %s", name, len(got), err, x.says)
		}
		if err != nil && (strings.Contains(err.Error(), testSealKey) || strings.Contains(err.Error(), "body")) {
			t.Errorf("%s: the error says too much: %v", name, err)
		}
	}
	for n := range payload {
		if _, err := c.open(payload[:n], &testSealedFor); n > 0 && !errors.Is(err, store.ErrCorrupt) {
			t.Errorf("the first %d bytes: %v", n, err)
		}
		for _, flip := range []byte{1, 0x40, 0x80, 0xff} {
			damaged := slices.Clone(payload)
			damaged[n] ^= flip
			encoded, err := c.open(damaged, &testSealedFor)
			if err == nil && !record.IsSealed(damaged) {
				_, err = record.Decode[Field](encoded)
			}
			if !errors.Is(err, store.ErrCorrupt) {
				t.Errorf("byte %d xor %#02x: %v", n, flip, err)
			}
		}
	}
	if _, err := c.open(append(slices.Clone(payload), 0), &testSealedFor); !errors.Is(err, store.ErrCorrupt) {
		t.Errorf("a byte longer: %v", err)
	}
}

func TestSealedSecretsRotate(t *testing.T) {
	t.Parallel()
	first, second, third := testSecret(t, "1"), testSecret(t, "2"), testSecret(t, "3")
	encoded, byFirst := sealedSample(&Sealing{Secret: first}, []byte("body"))
	_, bySecond := sealedSample(&Sealing{Secret: second}, []byte("body"))
	payloads := [][]byte{encoded, byFirst, bySecond}
	for i, c := range []struct {
		by    Sealing
		opens []bool // of payloads
	}{
		{Sealing{}, []bool{true, false, false}},
		{Sealing{OtherSecrets: []Secret{first}}, []bool{true, true, false}},
		{Sealing{Secret: first, OtherSecrets: []Secret{second}}, []bool{true, true, true}},
		{Sealing{Secret: second, OtherSecrets: []Secret{third, first}}, []bool{true, true, true}},
		{Sealing{Secret: third, OtherSecrets: []Secret{second}}, []bool{true, false, true}},
		{Sealing{Secret: second, OtherSecrets: []Secret{first}, Strict: true}, []bool{false, true, true}},
	} {
		for p, payload := range payloads {
			if _, err := c.by.open(payload, &testSealedFor); (err == nil) != c.opens[p] {
				t.Errorf("policy %d opens payload %d: %v", i, p, err)
			}
		}
	}
}

func TestSecretsAreNotPrinted(t *testing.T) {
	t.Parallel()
	cfg := Config{Seal: Sealing{Secret: testSecret(t, "2026-11"), OtherSecrets: []Secret{testSecret(t, "2026-10")}}}
	text := must(json.Marshal(cfg.Seal.Secret))
	for _, shown := range []string{
		fmt.Sprint(cfg.Seal), fmt.Sprintf("%+v", cfg), fmt.Sprintf("%#v", cfg.Seal), fmt.Sprintf("%x", cfg.Seal.Secret), string(text),
		fmt.Sprint(cfg.Seal.Secret, Secret{}),
	} {
		for _, key := range []string{"2026-11!", "2026-10!", hex.EncodeToString([]byte("2026-11!")), fmt.Sprint([]byte("2026-11!"))} {
			if strings.Contains(shown, strings.Trim(key, "[]")) {
				t.Errorf("%s is in %s", key, shown)
			}
		}
	}
}

// A MaxAge below the retention that the engine gives, and what a completion may be late,
// would end replays before it.
func TestSealingMaxAgeCoversTheRetentionOfTheEngine(t *testing.T) {
	t.Parallel()
	const late = 3*time.Second + 5*time.Minute + 10*time.Second + time.Minute
	engine := must(reprise.New(memstore.New(), reprise.Config{
		Retention: time.Hour, CompleteTimeout: 3 * time.Second, Lease: 10 * time.Second, Background: reprise.BackgroundLimits{Age: 5 * time.Minute},
	}))
	for age, ok := range map[time.Duration]bool{0: true, time.Hour: false, time.Hour + late - 1: false, time.Hour + late: true} {
		cfg := Config{Seal: Sealing{Secret: testSecret(t, "1"), MaxAge: age}}
		if _, err := Over(engine, cfg); (err == nil) != ok || !ok && !strings.Contains(err.Error(), "Config.Seal.MaxAge") {
			t.Errorf("%v: %v", age, err)
		}
		cfg.Retention = time.Minute
		if _, err := Over(engine, cfg); err != nil {
			t.Errorf("%v with a retention of its own: %v", age, err)
		}
	}
}

func TestSealingNamesTheInvalidField(t *testing.T) {
	t.Parallel()
	s := testSecret(t, "1")
	for field, c := range map[string]Sealing{
		"ClearHead: is set without Secret": {ClearHead: true},
		"Strict: is set without Secret":    {Strict: true},
		"MaxAge: is set without Secret":    {MaxAge: time.Hour, OtherSecrets: []Secret{s}},
		"MaxAge: -1s is negative":          {Secret: s, MaxAge: -time.Second},
		"OtherSecrets: one of them":        {OtherSecrets: []Secret{{}}},
		"OtherSecrets: the ID \"1\" is":    {OtherSecrets: []Secret{s, s}},
		"OtherSecrets: the ID \"1\" is th": {Secret: s, OtherSecrets: []Secret{s}},
	} {
		if err := c.check(); !errors.Is(err, store.ErrInvalid) || !strings.Contains(err.Error(), "Config.Seal."+field) {
			t.Errorf("%s: %v", field, err)
		}
	}
	for _, c := range []struct {
		id  string
		key int
		ok  bool
	}{
		{"", 32, false},
		{strings.Repeat("x", 33), 32, false},
		{"café", 32, false},
		{"1", 31, false},
		{"1", 4097, false},
		{"1", 32, true},
		{"1", 4096, true},
		{strings.Repeat("~", 32), 32, true},
		{" ", 32, true},
	} {
		s, err := NewSecret(c.id, make([]byte, c.key))
		if c.ok && (err != nil || s.String() != fmt.Sprintf("secret %q", c.id) || s.ID() != c.id) || !c.ok && !errors.Is(err, store.ErrInvalid) {
			t.Errorf("%q with %d bytes: %v, %v", c.id, c.key, s, err)
		}
	}
	if s := (Secret{}); s.String() != "no secret" || s.ID() != "" {
		t.Errorf("no secret is shown as %v", s)
	}
}

// FuzzOpenSealed opens anything. An opened envelope was sealed here.
func FuzzOpenSealed(f *testing.F) {
	file := must(os.ReadFile("../internal/record/testdata/sealed.json"))
	var vectors []struct {
		Payload  string
		SecretID string `json:"secret_id"`
	}
	if err := json.Unmarshal(file, &vectors); err != nil || len(vectors) == 0 {
		f.Fatal(len(vectors), err)
	}
	for _, v := range vectors {
		payload := must(hex.DecodeString(v.Payload))
		f.Add(payload, uint(0), uint8(0))
		f.Add(payload, uint(1), uint8(3))
		f.Add(payload[:len(payload)/2], uint(10), uint8(0))
		f.Add(payload, uint(19+len(v.SecretID)), uint8(0xff)) // a head that cannot be read
	}
	secret := testSecret(f, "2026-11")
	c := Sealing{Secret: secret}
	sample, sealed := sealedSample(&c, bytes.Repeat([]byte("body"), 100))
	f.Add(sealed, uint(0), uint8(1))
	f.Fuzz(func(t *testing.T, payload []byte, at uint, flip uint8) {
		if len(payload) > 0 {
			payload = slices.Clone(payload)
			payload[at%uint(len(payload))] ^= flip
		}
		encoded, err := c.open(payload, &testSealedFor)
		switch {
		case err != nil && !errors.Is(err, store.ErrCorrupt):
			t.Fatalf("%v does not wrap ErrCorrupt", err)
		case err == nil && record.IsSealed(payload) && !bytes.Equal(encoded, sample):
			t.Fatalf("opened %x, which nobody sealed, as %x", payload, encoded)
		case err == nil && !record.IsSealed(payload) && !bytes.Equal(payload, encoded):
			t.Fatal("what is not sealed was changed")
		}
	})
}

// MaxAge is the last age that opens.
func TestSealedMaxAgeIsIncluded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := Sealing{Secret: testSecret(t, "1"), MaxAge: time.Hour}
		_, payload := sealedSample(&c, []byte("body"))
		time.Sleep(time.Hour)
		if _, err := c.open(payload, &testSealedFor); err != nil {
			t.Errorf("at its age: %v", err)
		}
		time.Sleep(time.Nanosecond)
		if _, err := c.open(payload, &testSealedFor); !errors.Is(err, errEnvelopeAge) {
			t.Errorf("after it: %v", err)
		}
	})
}
