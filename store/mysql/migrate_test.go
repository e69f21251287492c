package reprisemysql

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
		"5a8e9eb1fc95c55579e46dee576654bec73eb66fd382548885cb17373e49c3bb",
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
