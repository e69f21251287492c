package repriseredis

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"
	"github.com/reprise-go/reprise/core/store"
)

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
	cluster, ok := s.client.(*redis.ClusterClient)
	if !ok {
		return l, nil
	}
	slots, err := cluster.ClusterSlots(ctx).Result() //nolint:staticcheck // deprecated in documentation only; it names the primary of each range first
	if err != nil {
		return l, fail(classify(err).class, err)
	}
	parts := make([]string, 0, len(slots))
	for _, slot := range slots {
		if len(slot.Nodes) > 0 {
			parts = append(parts, shapeOf(slot))
		}
	}
	slices.Sort(parts)
	l.shape = digest(parts...)
	return l, nil
}

// identity asks a server for its identity, which is unknown without the permission for
// INFO.
func (l listing) identity(ctx context.Context, node int) (id identity, err error) {
	text, err := l.clients[node].Info(ctx, "server", "replication").Result()
	if err != nil {
		if f := classify(err); !errors.Is(f.class, store.ErrMisconfigured) {
			return id, fail(f.class, err)
		}
		return id, nil
	}
	info := make(serverInfo, 64)
	info.parse(text)
	return identity{digest(info["run_id"]), digest(info["master_replid"]), digest(info["master_replid2"])}, nil
}

// resume returns where a listing that stopped at a position continues: there, or at the
// start of a server, if that was replaced or slots moved. The error is [store.ErrInvalid]
// when no server has the data of that listing.
func (l listing) resume(ctx context.Context, at position) (position, error) {
	if at.shape == l.shape && at.node < len(l.clients) {
		id, err := l.identity(ctx, at.node)
		switch {
		case err != nil:
			return at, err
		case id.process == at.last.process:
			return at, nil
		case id.has(at.last.data):
			return position{shape: l.shape, node: at.node}, nil
		}
	}
	for node := range l.clients {
		id, err := l.identity(ctx, node)
		if err != nil {
			return at, err
		}
		if id.has(at.last.data) {
			return position{shape: l.shape}, nil
		}
	}
	return at, errCursor("the server that it belongs to is gone or lost its data")
}

// has reports whether a server has these data, or may have.
func (id identity) has(data uint64) bool {
	return data == 0 || id.data == 0 || data == id.data || data == id.before
}
