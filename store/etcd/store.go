package repriseetcd

import (
	"cmp"
	"context"
	"encoding/hex"
	"fmt"
	"log/slog"
	"strconv"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/internal/prefix"
	"github.com/reprise-go/reprise/store/internal/probe"
	"github.com/reprise-go/reprise/store/internal/replays"
)

// The first letters of the keys, behind the prefix.
const (
	records  = "r/" // the record, with a small payload that ends with it
	alive    = "l/" // exists while the attempt of a record is live; its value is liveValue
	payloads = "p/" // exists while another payload is replayed; its value is the payload
	parts    = "b/" // the parts of a payload that is too large for one value
)

// Store is a [store.Store] in etcd, with the abilities [store.Waiter], [store.Inspector]
// and [store.Checker]. It is safe for concurrent use, and owns no goroutine and no
// connection: the caller owns the client. [New] and [Open] make stores; the zero value is
// not usable.
type Store struct {
	client *clientv3.Client
	config Config
	leases leases
	mine   attempts
	recent replays.Ratio // counts each claim that needs no write as a replay
	woken  atomic.Int64  // when the client was woken last, in milliseconds since 1970
}

var (
	_ store.Store     = (*Store)(nil)
	_ store.Waiter    = (*Store)(nil)
	_ store.Inspector = (*Store)(nil)
	_ store.Checker   = (*Store)(nil)
	_ store.Surveyor  = (*Store)(nil)
)

// New returns a store. It does not contact the server; [Open] does. The error is
// [store.ErrInvalid] when the client is nil or a field of c is out of range.
func New(client *clientv3.Client, c Config) (*Store, error) {
	if client == nil {
		return nil, invalid("the client is nil")
	}
	if err := prefix.Check(c.Prefix, "orders/"); err != nil {
		return nil, invalid("%v", err)
	}
	c.Logger = cmp.Or(c.Logger, slog.Default())
	return &Store{
		client: client, config: c,
		leases: leases{client: client, current: map[sharers]*lease{}, ends: map[clientv3.LeaseID]end{}},
		mine:   attempts{began: map[store.Owner]time.Time{}},
	}, nil
}

// Open is [New], followed by [Store.Check] and a trial of every operation on a record
// that it deletes again. The error is [store.ErrMisconfigured] for a cluster on which a
// guarantee does not hold. Warnings go to [Config.Logger].
func Open(ctx context.Context, client *clientv3.Client, c Config) (*Store, error) {
	s, err := New(client, c)
	if err != nil {
		return nil, err
	}
	if err := probe.Judge(ctx, "etcd", s.config.Logger, s); err != nil {
		return nil, err
	}
	if err := s.probe(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

// key returns the key of a kind for an ID.
func (s *Store) key(kind string, id store.ID) string {
	return s.config.Prefix + kind + hex.EncodeToString(id[:])
}

// found is the state of an ID as a transaction read it.
type found struct {
	at       int64 // the revision of the cluster at which it was read
	exists   bool
	revision int64 // the revision that wrote the record
	lease    clientv3.LeaseID
	record   record
	corrupt  error // the record is unreadable

	live     bool
	spare    time.Duration // by how much the live key's lease of etcd outlasts the attempt's lease
	liveAt   int64         // the revision that wrote the live key, 0 without one, or unread
	liveTill clientv3.LeaseID

	replayed bool // the payload is there
	payload  []byte
}

// unread is the liveAt of a record whose live key was not read, and is not compared.
const unread = -1

// read returns the operations whose results look reads.
func (s *Store) read(id store.ID) []clientv3.Op {
	return []clientv3.Op{
		clientv3.OpGet(s.key(records, id)), clientv3.OpGet(s.key(alive, id)), clientv3.OpGet(s.key(payloads, id)),
	}
}

// look returns the finding of the operations of read.
func look(r *clientv3.TxnResponse) found {
	f := found{at: r.Header.Revision}
	if kvs := r.Responses[0].GetResponseRange().Kvs; len(kvs) > 0 {
		f.hold(kvs[0])
	}
	if len(r.Responses) == 1 { // of glance
		return f
	}
	if kvs := r.Responses[1].GetResponseRange().Kvs; len(kvs) > 0 {
		f.live, f.liveAt, f.liveTill, f.spare = true, kvs[0].ModRevision, clientv3.LeaseID(kvs[0].Lease), spareOf(kvs[0].Value)
	}
	if kvs := r.Responses[2].GetResponseRange().Kvs; len(kvs) > 0 && !f.record.whole {
		f.replayed, f.payload = true, kvs[0].Value
	}
	return f
}

// hold makes the finding that of a record's key.
func (f *found) hold(kv *mvccpb.KeyValue) {
	f.exists, f.revision, f.lease = true, kv.ModRevision, clientv3.LeaseID(kv.Lease)
	if f.record, f.corrupt = decode(kv.Value, kv.ModRevision); f.corrupt != nil {
		f.corrupt = fail(store.ErrCorrupt, f.corrupt)
	}
	if f.record.whole {
		f.replayed, f.payload = true, kv.Value[len(kv.Value)-f.record.size:]
	}
}

// liveValue is the value of a live key: by how much its lease outlasts the attempt's.
func liveValue(spare time.Duration) string { return strconv.FormatInt(spare.Milliseconds(), 10) }

func spareOf(value []byte) time.Duration {
	ms, _ := strconv.ParseInt(string(value), 10, 64) // 0 for any other value
	return time.Duration(ms) * time.Millisecond
}

// inspect reads the keys of an ID.
func (s *Store) inspect(ctx context.Context, id store.ID) (found, error) {
	r, err := s.commit(ctx, nil, s.read(id), nil)
	if err != nil {
		return found{}, classify(err)
	}
	return look(r), nil
}

// glance reads the record of an ID alone, which is enough for most replays, and to see
// that the ID is new. Otherwise it returns nil.
func (s *Store) glance(ctx context.Context, id store.ID) (*found, error) {
	if err := s.ready(ctx); err != nil {
		return nil, err
	}
	r, err := s.commit(ctx, nil, []clientv3.Op{clientv3.OpGet(s.key(records, id))}, nil)
	if err != nil {
		return nil, classify(err)
	}
	switch now := look(r); {
	case !now.exists:
		return new(found), nil // whose live key was not read
	case now.corrupt == nil && !now.record.whole:
		return nil, nil //nolint:nilnil // see above
	default:
		return &now, nil
	}
}

// change makes changes if an ID is still as it was found, and updates its revision.
// Otherwise it updates the whole finding, and reports false.
func (s *Store) change(ctx context.Context, id store.ID, now *found, ops ...clientv3.Op) (done bool, err error) {
	same := []clientv3.Cmp{clientv3.Compare(clientv3.ModRevision(s.key(records, id)), "=", now.revision)}
	if now.liveAt != unread {
		same = append(same, clientv3.Compare(clientv3.ModRevision(s.key(alive, id)), "=", now.liveAt))
	}
	r, err := s.commit(ctx, same, ops, s.read(id))
	switch {
	case err != nil:
		return false, err
	case r.Succeeded:
		now.revision = r.Header.Revision
		return true, nil
	default:
		*now = look(r)
		return false, nil
	}
}

// commit executes a transaction. A member without a leader, such as one behind a
// partition, refuses it at once, and commit then asks the next member of the client.
func (s *Store) commit(ctx context.Context, same []clientv3.Cmp, ops, otherwise []clientv3.Op) (r *clientv3.TxnResponse, err error) {
	leading := clientv3.WithRequireLeader(ctx)
	for n := len(s.client.Endpoints()); ; n-- {
		r, err = s.client.Txn(leading).If(same...).Then(ops...).Else(otherwise...).Commit()
		if n <= 1 || !answered(err, rpctypes.ErrNoLeader) {
			break
		}
	}
	if err != nil && ctx.Err() != nil {
		return nil, ctx.Err() // the client may have repeated the call, so err may not be the error of the first try
	}
	return r, err
}

// wakeEvery is how often the client is woken at most.
const wakeEvery = 250 * time.Millisecond

// ready waits until the client has a connection. Its error is definite, unlike that of a
// request, for which the client waits too but does not tell whether it was sent.
//
// A client that lost its connections pauses for up to two minutes between its attempts to
// get one. A call that waits here ends these pauses, because it has to find out by itself
// whether a server is back.
func (s *Store) ready(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%w: %w", store.ErrUnavailable, err)
	}
	conn := s.client.ActiveConnection()
	if conn == nil {
		return nil // a client of clientv3.NewCtxClient has none
	}
	for first := true; ; first = false {
		state := conn.GetState()
		switch {
		case state == connectivity.Ready:
			return nil
		case state == connectivity.Shutdown:
			return fmt.Errorf("%w: etcd: the client is closed", store.ErrUnavailable)
		case state == connectivity.Idle:
			conn.Connect()
		case state == connectivity.TransientFailure || !first: // one member may pause while another one is tried
			s.wake(conn)
		}
		turn, cancel := context.WithTimeout(ctx, wakeEvery)
		conn.WaitForStateChange(turn, state)
		cancel()
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("%w: etcd: no connection to a member: %w", store.ErrUnavailable, err)
		}
	}
}

// wake ends the pauses of the client, unless another call did so lately: each time it
// dials every member that pauses.
func (s *Store) wake(conn *grpc.ClientConn) {
	now, last := time.Now().UnixMilli(), s.woken.Load()
	if (now-last >= wakeEvery.Milliseconds() || now < last) && s.woken.CompareAndSwap(last, now) {
		conn.ResetConnectBackoff()
	}
}
