package table

import (
	"strings"
	"testing"
)

// TestNamesFitTheServersLimit: PostgreSQL cuts longer names, and two that were cut could
// be the same.
func TestNamesFitTheServersLimit(t *testing.T) {
	t.Parallel()
	c := Options{Table: strings.Repeat("t", MaxTable)}
	s := NewNames(c)
	for _, name := range append(s.functions, s.migrations) {
		if parts := strings.Split(strings.ReplaceAll(name, `"`, ""), "."); len(parts[len(parts)-1]) > 63 {
			t.Errorf("%s is longer than 63 bytes", name)
		}
	}
}
