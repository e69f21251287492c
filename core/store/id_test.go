package store_test

import (
	"encoding/hex"
	"errors"
	"strings"
	"testing"

	"github.com/reprise-go/reprise/core/store"
)

// These vectors are frozen: see docs/engineering/adr/0002-byte-layouts.md.
func TestIDIsLayoutVersion1(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ scope, endpoint, key, want string }{
		{"", "", "", "df9283da4dd76609880bafb8e1eae1fe9cf5797cbc1c6d8584857b7644c7e09a"},
		{"tenant", "", "k", "3b0b4f6fd7dd4510098f16421bd4e907749e165d301b585b07605c6992455680"},
		{"tenant", "POST /orders", "8e03978e-40d5-43e8-bc93-6894a57f9324", "ea574440761cb931924018ca6fb02b39fe8977b3a42e392e12977607e19062fd"},
		{"größe", "\x00", strings.Repeat("k", 1000), "07b939614fdcda790dde4238f9b18f51fae5958f73f2158cbe76ff8c87b1b922"},
	} {
		got := store.DeriveID(c.scope, c.endpoint, c.key)
		if got.String() != c.want {
			t.Errorf("%.20q, %q, %.20q: %v, want %s", c.scope, c.endpoint, c.key, got, c.want)
		}
		if got.Short() != c.want[:12] {
			t.Errorf("in short %s", got.Short())
		}
	}
}

func TestFingerprintOfIsLayoutVersion1(t *testing.T) {
	t.Parallel()
	for want, parts := range map[string][]string{
		"083d2116d4758d1a9dc6c7e141fef03572ca6ecaec51f8620db49fd26ce74509": nil,
		"03327ab8056c72a6b573c1166c758788574e840344563156ffd445a5744a38ce": {"key-1", "", `{"amount":5}`},
	} {
		var list [][]byte
		for _, p := range parts {
			list = append(list, []byte(p))
		}
		if got := store.FingerprintOf(list...); hex.EncodeToString(got[:]) != want {
			t.Errorf("%q: %x, want %s", parts, got, want)
		}
	}
	if store.FingerprintOf([]byte("ab")) == store.FingerprintOf([]byte("a"), []byte("b")) {
		t.Error("bytes that move from one part to the next make no difference")
	}
}

// Bytes that move from one part to the next make another operation.
func FuzzIDIsInjective(f *testing.F) {
	f.Add("tenant", "", "k", "tenan", "t", "k")
	f.Add("a", "b", "c", "a", "b", "c")
	f.Add("a\x00", "", "b", "a", "\x00", "b")
	f.Add("", "\x00\x00\x00\x00\x00\x00\x00\x01a", "", "", "", "\x00\x00\x00\x00\x00\x00\x00\x01a")
	f.Fuzz(func(t *testing.T, scope, endpoint, key, scope2, endpoint2, key2 string) {
		same := scope == scope2 && endpoint == endpoint2 && key == key2
		if got := store.DeriveID(scope, endpoint, key) == store.DeriveID(scope2, endpoint2, key2); got != same {
			t.Errorf("equal IDs: %v, equal operations: %v", got, same)
		}
	})
}

func TestOwnersAreRandomAndNotZero(t *testing.T) {
	t.Parallel()
	seen := make(map[store.Owner]bool)
	for range 1000 {
		o := store.NewOwner()
		if o.IsZero() || seen[o] {
			t.Fatal("zero, or the same twice")
		}
		seen[o] = true
	}
	if !(store.Owner{}).IsZero() {
		t.Error("the zero owner is not zero")
	}
}

// An ID has 64 digits, in either case.
func TestParseIDReadsTheResultOfString(t *testing.T) {
	t.Parallel()
	id := store.DeriveID("scope", "endpoint", "key")
	for _, text := range []string{id.String(), strings.ToUpper(id.String())} {
		if got, err := store.ParseID(text); err != nil || got != id {
			t.Errorf("%q reads as %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", id.Short(), id.String()[2:], id.String()[1:], id.String() + "0", id.String() + "00", "x" + id.String()[1:], " " + id.String()} {
		got, err := store.ParseID(text)
		if !errors.Is(err, store.ErrInvalid) || got != (store.ID{}) || !strings.Contains(err.Error(), "has 64 hexadecimal digits") {
			t.Errorf("%q reads as %v, %v; want ErrInvalid and how long an ID is", text, got, err)
		}
	}
}
