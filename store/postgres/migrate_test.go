package reprisepg

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"
)

// TestMigrationsNeverChange: an applied migration stays unchanged; a change is
// another migration. When it needs another form of a condition that the migration shares
// with the statements, the migration gets its own copy of the old one.
func TestMigrationsNeverChange(t *testing.T) {
	t.Parallel()
	golden := []string{
		"a7777c9c2de334863647367246b7a5864235453c32ae766797c1147d0cabe5cc",
	}
	list, err := Migrations(Config{})
	if err != nil {
		t.Fatal(err)
	}
	if len(list) != len(golden) {
		t.Fatalf("%d migrations and %d digests", len(list), len(golden))
	}
	for i, want := range golden {
		m := list[i]
		if sum := sha256.Sum256([]byte(m.SQL)); hex.EncodeToString(sum[:]) != want {
			t.Errorf("migration %s has the digest %x", m.Name, sum)
		}
		if strings.ContainsAny(m.SQL, "{}") {
			t.Errorf("migration %s has a placeholder that nothing fills", m.Name)
		}
	}
}
