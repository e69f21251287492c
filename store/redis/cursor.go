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

// position is where the next page of a listing starts. A cursor is cursorWord and then a
// position in base64.
type position struct {
	Listed  uint64 // the digest of the prefix and the database
	Servers uint64 // see servers; where they changed, a position means nothing
	Node    uint16 // the index of the server
	Scan    uint64 // the cursor of SCAN

	// If a page has no room for all records of a step, the next page repeats the step. The
	// records up to the ID After were shown already, provided that the repeated step ends at
	// Next again.
	Next  uint64
	After store.ID
}

const cursorWord = "redis-"

// cursor returns the text of a position.
func (s *Store) cursor(at position) string {
	db := 0
	if s.single != nil {
		db = s.single.Options().DB
	}
	at.Listed = digest(s.config.Prefix, strconv.Itoa(db))
	b, _ := binary.Append(nil, binary.BigEndian, at) // of fixed size
	return cursorWord + base64.RawURLEncoding.EncodeToString(b)
}

// parseCursor reads a cursor, the reverse of cursor. The error is [store.ErrInvalid].
func (s *Store) parseCursor(text string) (at position, err error) {
	if text == "" {
		return at, nil
	}
	b, _ := base64.RawURLEncoding.DecodeString(strings.TrimPrefix(text, cursorWord))
	if _, err = binary.Decode(b, binary.BigEndian, &at); err != nil || s.cursor(at) != text {
		return at, invalid("Query.After is not of a listing of this prefix and database; start the listing again")
	}
	return at, nil
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
