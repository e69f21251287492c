package repriseredis

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
	"github.com/reprise-go/reprise/core/store"
)

// position is where the next page of a listing starts.
type position struct {
	shape uint64 // of the cluster
	node  int    // the index of the server in listing.clients
	last  identity
	stepper
	over bool
}

// A cursor is cursorWord and then, in base64, the fields of a position.
const (
	cursorWord = "redis-"
	cursorSize = 8 + 8 + 2 + 8 + 8 + 8 + 8 // followed by an ID where a step is repeated
)

// cursor returns the text of a position.
func (s *Store) cursor(at position) string {
	b := make([]byte, 0, cursorSize+len(store.ID{}))
	for _, n := range []uint64{s.listed(), at.shape} {
		b = binary.BigEndian.AppendUint64(b, n)
	}
	b = binary.BigEndian.AppendUint16(b, uint16(at.node)) //nolint:gosec // a cluster has at most 16,384
	for _, n := range []uint64{at.last.process, at.last.data, at.scan, at.next} {
		b = binary.BigEndian.AppendUint64(b, n)
	}
	return cursorWord + base64.RawURLEncoding.EncodeToString(append(b, at.after...))
}

// parseCursor reads a cursor, the reverse of cursor. The error is [store.ErrInvalid].
func (s *Store) parseCursor(text string) (at position, err error) {
	if text == "" {
		return at, nil
	}
	encoded, ok := strings.CutPrefix(text, cursorWord)
	b, err := base64.RawURLEncoding.DecodeString(encoded)
	if !ok || err != nil || base64.RawURLEncoding.EncodeToString(b) != encoded ||
		len(b) != cursorSize && len(b) != cursorSize+len(store.ID{}) {
		return at, errCursor("it is not one of a Redis store")
	}
	number := func() uint64 {
		n := binary.BigEndian.Uint64(b)
		b = b[8:]
		return n
	}
	if number() != s.listed() {
		return at, errCursor("it belongs to another prefix or database")
	}
	at.shape = number()
	at.node, b = int(binary.BigEndian.Uint16(b)), b[2:]
	at.last.process, at.last.data = number(), number()
	at.scan, at.next = number(), number()
	if len(b) > 0 {
		at.after = b
	}
	return at, nil
}

func errCursor(why string) error {
	return fmt.Errorf("%w: redis store: Query.After cannot be used, because %s; start the listing again", store.ErrInvalid, why)
}

// listed returns the part that all cursors of a store have in common.
func (s *Store) listed() uint64 {
	db := 0
	if client, ok := s.client.(*redis.Client); ok {
		db = client.Options().DB
	}
	return digest(s.prefix, strconv.Itoa(db))
}

// shapeOf returns a text that changes when a range of slots gets another primary. It
// contains the name of the node, because nodes may know each other by different
// addresses.
func shapeOf(slot redis.ClusterSlot) string {
	return fmt.Sprint(slot.Start, slot.End, slot.Nodes[0].ID)
}

// pattern returns the glob that the keys of records match.
func (s *Store) pattern() string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`).Replace(s.prefix) + "*"
}

// digest returns a 64-bit hash of a list of texts, and 0 for a single empty one.
func digest(parts ...string) uint64 {
	if len(parts) == 1 && parts[0] == "" {
		return 0
	}
	h := sha256.New()
	for _, p := range parts {
		_, _ = fmt.Fprintf(h, "%d:%s", len(p), p)
	}
	return binary.BigEndian.Uint64(h.Sum(nil))
}
