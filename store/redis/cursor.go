package repriseredis

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
	"github.com/reprise-go/reprise/core/store"
)

// position is where the next page of a listing starts. A cursor is cursorWord and then,
// in base64, a bookmark, followed by an ID where a step is repeated.
type position struct {
	bookmark

	// If a page has no room for all records of a step, the next page repeats the step. The
	// records up to the ID after were shown already, provided that the repeated step ends at
	// Next again.
	after []byte
}

type bookmark struct {
	Listed  uint64 // see listed
	Servers uint64 // see servers; where they changed, a position means nothing
	Node    uint16 // the index of the server
	Scan    uint64 // the cursor of SCAN
	Next    uint64
}

const cursorWord = "redis-"

// cursor returns the text of a position.
func (s *Store) cursor(at position) string {
	at.Listed = s.listed()
	b, _ := binary.Append(nil, binary.BigEndian, at.bookmark) // of fixed size
	return cursorWord + base64.RawURLEncoding.EncodeToString(append(b, at.after...))
}

// parseCursor reads a cursor, the reverse of cursor. The error is [store.ErrInvalid].
func (s *Store) parseCursor(text string) (at position, err error) {
	if text == "" {
		return at, nil
	}
	b, _ := base64.RawURLEncoding.DecodeString(strings.TrimPrefix(text, cursorWord))
	n, err := binary.Decode(b, binary.BigEndian, &at.bookmark)
	if len(b) > n {
		at.after = b[n:]
	}
	switch {
	case err != nil, cursorWord+base64.RawURLEncoding.EncodeToString(b) != text, at.after != nil && len(at.after) != len(store.ID{}):
		return at, errCursor("it is not one of a Redis store")
	case at.Listed != s.listed():
		return at, errCursor("it belongs to another prefix or database")
	}
	return at, nil
}

func errCursor(why string) error {
	return fmt.Errorf("%w: redis store: Query.After cannot be used, because %s; start the listing again", store.ErrInvalid, why)
}

// listed returns the part that all cursors of a store have in common.
func (s *Store) listed() uint64 {
	db := 0
	if s.single != nil {
		db = s.single.Options().DB
	}
	return digest(s.config.Prefix, strconv.Itoa(db))
}

// pattern returns the glob that the keys of records match whose IDs begin with digits, up
// to the last whole byte.
func (s *Store) pattern(digits string) string {
	begin := s.config.Prefix
	first, _ := hex.DecodeString(digits[:len(digits)&^1])
	if rest := strings.TrimLeft(string(first), "}"); rest != "" {
		begin += strings.TrimSuffix(string(first), rest) + "{" + rest
	}
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`).Replace(begin) + "*"
}

// digest returns a hash of texts that have no spaces.
func digest(texts ...string) uint64 {
	h := fnv.New64a()
	_, _ = io.WriteString(h, strings.Join(texts, " ")) // never fails
	return h.Sum64()
}

// servers returns the primaries in the order of a listing, and a digest of them: it
// changes with each process, because another process does not understand the positions of
// a scan, and with each slot of a cluster that moves. The digest ignores processes where
// the permission for INFO is missing.
func (s *Store) servers(ctx context.Context) (clients []*redis.Client, state uint64, err error) {
	if clients, err = s.primaries(ctx); err != nil {
		return nil, 0, err
	}
	if len(clients) == 0 {
		return nil, 0, fail(store.ErrUnavailable, errors.New("the cluster has no primary"))
	}
	slices.SortFunc(clients, func(a, b *redis.Client) int { return strings.Compare(a.Options().Addr, b.Options().Addr) })
	var parts []string
	for _, client := range clients {
		text, err := client.Info(ctx, "server").Result()
		if err != nil && !errors.Is(readError(err), store.ErrMisconfigured) {
			return nil, 0, readError(err)
		}
		info := serverInfo{}
		info.parse(text)
		parts = append(parts, client.Options().Addr+"/"+info["run_id"])
	}
	if s.cluster == nil {
		return clients, digest(parts...), nil
	}
	slots, err := s.cluster.ClusterSlots(ctx).Result() //nolint:staticcheck // deprecated in documentation only; it names the primary of each range first
	if err != nil {
		return nil, 0, readError(err)
	}
	for _, slot := range slots {
		if len(slot.Nodes) > 0 { // by its name, because nodes may know it by different addresses
			parts = append(parts, fmt.Sprintf("%d-%d-%s", slot.Start, slot.End, slot.Nodes[0].ID))
		}
	}
	slices.Sort(parts)
	return clients, digest(parts...), nil
}
