package repriseredis

import (
	"strings"
	"testing"

	"github.com/reprise-go/reprise/core/store"
)

func TestAKeyIsThePrefixAndTheID(t *testing.T) {
	t.Parallel()
	id := store.ID{0: 0xab, 31: 0x01}
	s := &Store{prefix: "p*[?]\\:"}
	if got, want := s.key(id), "p*[?]\\:\xab"+strings.Repeat("\x00", 30)+"\x01"; got != want {
		t.Errorf("key %q, want %q", got, want)
	}
	if got, want := s.pattern(), `p\*\[\?\]\\:*`; got != want {
		t.Errorf("pattern %q, want %q", got, want)
	}
	l := lister{store: s, shown: map[store.ID]bool{}}
	keys := []string{s.key(id), s.key(id), s.prefix + "short", s.prefix + strings.Repeat("l", 33), strings.Repeat("o", 40)}
	if got := l.ids(keys, nil); len(got) != 1 || got[0] != id {
		t.Errorf("found %v, want the one ID", got)
	}
}
