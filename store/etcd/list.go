package repriseetcd

import (
	"context"
	"fmt"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/reprise-go/reprise/core/store"
)

// scannedPerPage is how many records one call of List reads: up to 4 MiB of them. If it
// also asks which payloads exist beside them, the server reads these whole, even to
// return only their keys.
const scannedPerPage = 1000

// List implements [store.Inspector], in the order of the IDs. Every page shows one
// revision of the cluster.
func (s *Store) List(ctx context.Context, q store.Query) (store.Page, error) {
	if err := q.Validate(); err != nil {
		return store.Page{}, err
	}
	if err := s.ready(ctx); err != nil {
		return store.Page{}, err
	}
	after, total, err := s.parseCursor(q.After)
	if err != nil {
		return store.Page{}, err
	}
	all, kinds := s.config.Prefix+records, []string{alive}
	if withCompleted(&q) {
		kinds = append(kinds, payloads)
	}
	r, err := s.client.Get(ctx, all+max(after, q.Digits), clientv3.WithRange(clientv3.GetPrefixRangeEnd(all+q.Digits)), clientv3.WithLimit(scannedPerPage))
	if err != nil {
		return store.Page{}, classify(err)
	}
	if q.After == "" {
		total = r.Count
	}
	page := store.Page{Total: total}
	if len(r.Kvs) == 0 {
		return page, nil
	}
	first, last := strings.TrimPrefix(string(r.Kvs[0].Key), all), strings.TrimPrefix(string(r.Kvs[len(r.Kvs)-1].Key), all)
	others := make([]clientv3.Op, 0, 2)
	for _, kind := range kinds {
		others = append(others, s.between(kind, first, last, r.Header.Revision))
	}
	read, err := s.client.Txn(ctx).Then(others...).Commit()
	if err != nil {
		return store.Page{}, classify(err)
	}
	live := byID(read.Responses[0].GetResponseRange().Kvs)
	replayed := byID(read.Responses[len(kinds)-1].GetResponseRange().Kvs)
	ends := map[clientv3.LeaseID]time.Duration{}
	for i, kv := range r.Kvs {
		text := strings.TrimPrefix(string(kv.Key), all)
		page.Scanned++
		view, selected, err := s.listed(ctx, &q, text, kv, live[text], replayed[text], ends)
		if err != nil {
			return store.Page{}, err
		}
		if selected {
			page.Records = append(page.Records, view)
		}
		if more := i < len(r.Kvs)-1 || r.More; more && (len(page.Records) == q.Limit || i == len(r.Kvs)-1) {
			page.Next = fmt.Sprintf(cursor, s.config.Prefix, total, text+"\x00")
			return page, nil
		}
	}
	return page, nil
}

// withCompleted reports whether a query may select completed records.
func withCompleted(q *store.Query) bool {
	return q.States.Has(store.StateCompleted) || q.States.Has(store.StateExpired)
}

// between returns the operation that reads the keys of a kind from one ID to another at a
// revision, without their values.
func (s *Store) between(kind, first, last string, revision int64) clientv3.Op {
	prefix := s.config.Prefix + kind
	return clientv3.OpGet(prefix+first, clientv3.WithRange(prefix+last+"\x00"), clientv3.WithKeysOnly(), clientv3.WithRev(revision))
}

// byID returns key-value pairs by the ID at the end of their keys.
func byID(kvs []*mvccpb.KeyValue) map[string]*mvccpb.KeyValue {
	ids := make(map[string]*mvccpb.KeyValue, len(kvs))
	for _, kv := range kvs {
		key := string(kv.Key)
		ids[key[strings.LastIndexByte(key, '/')+1:]] = kv
	}
	return ids
}

// listed returns a record, and whether q selects it. It skips a key that does not end in
// an ID, because it is not the store's.
func (s *Store) listed(ctx context.Context, q *store.Query, text string, kv, live, replayed *mvccpb.KeyValue, ends map[clientv3.LeaseID]time.Duration) (view store.Record, selected bool, err error) {
	id, err := store.ParseID(text)
	if err != nil {
		return view, false, nil //nolint:nilerr // see above
	}
	now := found{live: live != nil, replayed: replayed != nil}
	now.hold(kv)
	if live != nil {
		now.liveTill = clientv3.LeaseID(live.Lease)
	}
	if now.record.state == completed && !withCompleted(q) {
		return view, false, nil // without asking for the end of its lease
	}
	view, err = s.view(ctx, id, &now, ends)
	return view, err == nil && q.Selects(&view, time.Now()), err
}

// cursor is the form of a cursor: the prefix, which names the store, how many records
// there are, and where the next page starts.
const cursor = "etcd-%x-%d-%x"

// parseCursor returns where a page starts, and how many records there are.
func (s *Store) parseCursor(text string) (after string, total int64, err error) {
	if text == "" {
		return "", 0, nil
	}
	var prefix, start []byte
	if n, err := fmt.Sscanf(text, cursor, &prefix, &total, &start); err != nil || n != 3 || string(prefix) != s.config.Prefix {
		return "", 0, invalid("Query.After is not a cursor of this store; start the listing again")
	}
	return string(start), total, nil
}
