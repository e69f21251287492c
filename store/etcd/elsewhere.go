package repriseetcd

import (
	"context"
	"maps"
	"regexp"
	"slices"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/reprise-go/reprise/store/internal/prefix"
)

const (
	maxElsewhere  = 10   // prefixes
	keysElsewhere = 1000 // of one read
	readElsewhere = 200  // times
)

// recordKey matches the keys of the records of all stores.
var recordKey = regexp.MustCompile("^(.+)" + records + "[0-9a-f]{64}$")

// Elsewhere implements [store.Surveyor]. It reads up to 200,000 keys that are not
// records', and one record of each prefix.
func (s *Store) Elsewhere(ctx context.Context) ([]string, error) {
	if err := s.ready(ctx); err != nil {
		return nil, err
	}
	found := make(map[string]bool)
	for from, reads := "\x00", 0; reads < readElsewhere && len(found) < maxElsewhere; reads++ {
		r, err := s.client.Get(ctx, from, clientv3.WithFromKey(), clientv3.WithKeysOnly(), clientv3.WithLimit(keysElsewhere))
		if err != nil {
			return nil, classify(err)
		}
		if len(r.Kvs) == 0 {
			break
		}
		for _, kv := range r.Kvs {
			from = string(kv.Key) + "\x00"
			if match := recordKey.FindStringSubmatch(string(kv.Key)); len(match) > 1 && prefix.Check(match[1], "") == nil {
				if match[1] != s.config.Prefix {
					found[match[1]] = true
				}
				from = clientv3.GetPrefixRangeEnd(match[1] + records)
				break
			}
		}
	}
	return slices.Sorted(maps.Keys(found)), nil
}
