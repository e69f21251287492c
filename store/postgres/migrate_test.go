package reprisepg

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/reprise-go/reprise/core/store"
)

func TestNilDatabaseIsInvalid(t *testing.T) {
	t.Parallel()
	for _, db := range []Beginner{nil, (*pgxpool.Pool)(nil), (*pgx.Conn)(nil)} {
		if err := Migrate(t.Context(), db, Config{}); !errors.Is(err, store.ErrInvalid) {
			t.Errorf("Migrate: %v, want ErrInvalid", err)
		}
		if _, err := SchemaVersion(t.Context(), db, Config{}); !errors.Is(err, store.ErrInvalid) {
			t.Errorf("SchemaVersion: %v, want ErrInvalid", err)
		}
	}
}

// TestMigrationsNeverChange: an applied migration stays unchanged; a change is
// another migration. When it needs another form of a condition that the migration shares
// with the statements, the migration gets its own copy of the old one.
func TestMigrationsNeverChange(t *testing.T) {
	t.Parallel()
	golden := []string{
		"3b90fe6fddd3e5fb73bea4a206b38e492cd0196d469d0376c1894bccb3a8ca3a",
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
