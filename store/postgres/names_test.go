package reprisepg

import (
	"strings"
	"testing"

	"github.com/reprise-go/reprise/store/internal/sqlstore"
)

// TestNamesFitTheServersLimit: PostgreSQL cuts longer names, and two that were cut could
// be the same.
func TestNamesFitTheServersLimit(t *testing.T) {
	t.Parallel()
	c := options{Options: sqlstore.Options{Table: strings.Repeat("t", 50)}}
	s := newNames(c)
	for _, name := range append(s.functions, s.migrations) {
		if parts := strings.Split(strings.ReplaceAll(name, `"`, ""), "."); len(parts[len(parts)-1]) > 63 {
			t.Errorf("%s is longer than 63 bytes", name)
		}
	}
}
