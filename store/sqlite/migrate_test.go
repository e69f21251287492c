package reprisesqlite

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"
)

// TestMigrationsNeverChange: an applied migration stays unchanged; a change is another
// migration.
func TestMigrationsNeverChange(t *testing.T) {
	t.Parallel()
	golden := []string{
		"a7fce8c35f7f52d14e1aaa98437956c51a21b9a9ad42c65c06dba43de3f3ca5d",
	}
	list, err := Migrations(Config{})
	if err != nil || len(list) != len(golden) {
		t.Fatalf("%d migrations and %d digests, %v", len(list), len(golden), err)
	}
	for i, want := range golden {
		m := list[i]
		if sum := sha256.Sum256([]byte(m.SQL + m.Down)); hex.EncodeToString(sum[:]) != want {
			t.Errorf("migration %s has the digest %x", m.Name, sum)
		}
		if strings.ContainsAny(m.SQL+m.Down, "{}") {
			t.Errorf("migration %s has a placeholder that is not filled", m.Name)
		}
	}
}
