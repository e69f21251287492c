package repriseredis

import (
	"strings"
	"testing"

	"github.com/reprise-go/reprise/core/store"
)

func TestAKeyIsThePrefixAndTheID(t *testing.T) {
	t.Parallel()
	id := store.ID{0: 0xab, 31: 0x01}
	s := &Store{config: Config{Prefix: "p*[?]\\:"}}
	if got, want := s.key(id), "p*[?]\\:{\xab"+strings.Repeat("\x00", 30)+"\x01}"; got != want {
		t.Errorf("key %q, want %q", got, want)
	}
	for digits, rest := range map[string]string{"": "*", "2a0": `{\**`, "7d7d01": "}}{\x01*", "7d7d": "*"} {
		if got, want := s.pattern(digits), `p\*\[\?\]\\:`+rest; got != want {
			t.Errorf("pattern for %q: %q, want %q", digits, got, want)
		}
	}
	l := lister{store: s, shown: map[store.ID]bool{}}
	keys := []string{s.key(id), s.key(id), s.config.Prefix + "short", s.config.Prefix + strings.Repeat("l", keySize), strings.Repeat("o", 42), payloadKey(s.key(id))}
	if got := l.ids(keys, store.ID{}); len(got) != 1 || got[0] != id {
		t.Errorf("found %v, want the one ID", got)
	}
}

// hashed returns the part of a key that a cluster takes its slot from.
func hashed(key string) string {
	if _, after, ok := strings.Cut(key, "{"); ok {
		if tag, _, ok := strings.Cut(after, "}"); ok && tag != "" {
			return tag
		}
	}
	return key
}

// A cluster finds a payload where its record is, and different IDs have different keys.
func TestThePayloadIsInTheSlotOfItsRecord(t *testing.T) {
	t.Parallel()
	s := &Store{config: Config{Prefix: servicePrefix}}
	ids := map[string]store.ID{}
	for _, braces := range []string{"", "{", "}", "{}", "}{", "}}", "{{", "}}{", "}{}", "a}", "{a}", "a{", "a{b}", "}a}"} {
		for _, at := range []int{0, 1, 30, len(store.ID{}) - len(braces)} {
			id := store.ID{31: 1}
			copy(id[at:], braces)
			key := s.key(id)
			if got, want := hashed(payloadKey(key)), hashed(key); got != want || len(got) == len(key) {
				t.Errorf("%q: the payload is in the slot of %q, the record in that of %q", key, got, want)
			}
			if found, ok := s.idOf(key); !ok || found != id {
				t.Errorf("%q is the key of %x, want %x", key, found, id)
			}
			if other, ok := ids[key]; ok && other != id {
				t.Errorf("%q is the key of %x and of %x", key, id, other)
			}
			ids[key] = id
		}
	}
}
