package repriseredis

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/reprise-go/reprise/store/internal/prefix"
)

const (
	maxElsewhere  = 10        // prefixes
	keysElsewhere = 1_000_000 // that one call looks at
)

// Elsewhere implements [store.Surveyor] by scanning the primaries for keys of records. It
// looks at about a million keys.
func (s *Store) Elsewhere(ctx context.Context) ([]string, error) {
	nodes, err := s.primaries(ctx)
	if err != nil {
		return nil, err
	}
	found := make(map[string]bool)
	for _, node := range nodes {
		var at uint64
		for looked := 0; looked < keysElsewhere/len(nodes) && len(found) < maxElsewhere; looked += keysPerStep {
			var keys []string
			if keys, at, err = node.Scan(ctx, at, "*{*}", keysPerStep).Result(); err != nil {
				return nil, readError(err)
			}
			for _, key := range keys {
				if name, ok := prefixOf(key); ok && name != s.prefix {
					found[name] = true
				}
			}
			if at == 0 {
				break
			}
		}
	}
	names := slices.Sorted(maps.Keys(found))
	return names[:min(len(names), maxElsewhere)], nil
}

// prefixOf returns the prefix of the key of a record of any store.
func prefixOf(key string) (string, bool) {
	start := len(key) - keySize
	if start <= 0 || !strings.HasSuffix(key, "}") || !strings.HasPrefix(strings.TrimLeft(key[start:], "}"), "{") {
		return "", false
	}
	return key[:start], prefix.Check(key[:start], "") == nil
}
