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

	over bool
}

type bookmark struct {
	Listed, Shape uint64 // see listed and listing
	Node          uint16 // the index of the server in listing.clients
	Process, Data uint64 // its identity
	Scan          uint64 // the cursor of SCAN
	Next          uint64
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
	return digest(s.prefix + " " + strconv.Itoa(db)) // a prefix has no spaces
}

// pattern returns the glob that the keys of records match whose IDs begin with digits, up
// to the last whole byte.
func (s *Store) pattern(digits string) string {
	begin := s.prefix
	first, _ := hex.DecodeString(digits[:len(digits)&^1])
	if rest := strings.TrimLeft(string(first), "}"); rest != "" {
		begin += strings.TrimSuffix(string(first), rest) + "{" + rest
	}
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`).Replace(begin) + "*"
}

// digest returns a hash of a text, and 0 for an empty one.
func digest(text string) uint64 {
	if text == "" {
		return 0
	}
	h := fnv.New64a()
	_, _ = io.WriteString(h, text) // never fails
	return h.Sum64()
}

// listing is the list of servers that a listing goes through.
type listing struct {
	clients []*redis.Client // by their addresses
	shape   uint64          // of a cluster; changes with each slot that moves
}

// identity has hashes of the identifiers of a server. Zero is unknown.
type identity struct {
	process uint64 // run_id: only this process understands the positions of its scans
	data    uint64 // master_replid: a replica that was promoted has the data of its primary
	before  uint64 // master_replid2: the data that it had as a replica, or before its restart
}

// listing returns the primaries and the shape of the cluster.
func (s *Store) listing(ctx context.Context) (l listing, err error) {
	if l.clients, err = s.primaries(ctx); err != nil {
		return l, err
	}
	if len(l.clients) == 0 {
		return l, fail(store.ErrUnavailable, errors.New("the cluster has no primary"))
	}
	slices.SortFunc(l.clients, func(a, b *redis.Client) int {
		return strings.Compare(a.Options().Addr, b.Options().Addr)
	})
	if s.cluster == nil {
		return l, nil
	}
	slots, err := s.cluster.ClusterSlots(ctx).Result() //nolint:staticcheck // deprecated in documentation only; it names the primary of each range first
	if err != nil {
		return l, readError(err)
	}
	ranges := make([]string, 0, len(slots))
	for _, slot := range slots {
		if len(slot.Nodes) > 0 { // by its name, because nodes may know it by different addresses
			ranges = append(ranges, fmt.Sprint(slot.Start, slot.End, slot.Nodes[0].ID))
		}
	}
	slices.Sort(ranges)
	l.shape = digest(strings.Join(ranges, " "))
	return l, nil
}

// identity asks a server for its identity, which is unknown without the permission for
// INFO.
func (l listing) identity(ctx context.Context, node int) (id identity, err error) {
	text, err := l.clients[node].Info(ctx, "server", "replication").Result()
	if err != nil {
		if err = readError(err); !errors.Is(err, store.ErrMisconfigured) {
			return id, err
		}
		return id, nil
	}
	info := make(serverInfo, 64)
	info.parse(text)
	return identity{digest(info["run_id"]), digest(info["master_replid"]), digest(info["master_replid2"])}, nil
}

// mark notes the identity of the server of a position.
func (l listing) mark(ctx context.Context, at *position) error {
	id, err := l.identity(ctx, int(at.Node))
	at.Process, at.Data = id.process, id.data
	return err
}

// resume returns where a listing that stopped at a position continues: there, or at the
// start of a server, if that was replaced or slots moved. The error is [store.ErrInvalid]
// when no server has the data of that listing.
func (l listing) resume(ctx context.Context, at position) (position, error) {
	if at.Shape == l.shape && int(at.Node) < len(l.clients) {
		id, err := l.identity(ctx, int(at.Node))
		switch {
		case err != nil:
			return at, err
		case id.process == at.Process:
			return at, nil
		case id.has(at.Data):
			return position{bookmark: bookmark{Node: at.Node}}, nil
		}
	}
	for node := range l.clients {
		id, err := l.identity(ctx, node)
		if err != nil {
			return at, err
		}
		if id.has(at.Data) {
			return position{}, nil
		}
	}
	return at, errCursor("the server that it belongs to is gone or lost its data")
}

// has reports whether a server has these data, or may have.
func (id identity) has(data uint64) bool {
	return data == 0 || id.data == 0 || data == id.data || data == id.before
}
