package reprisepg

import (
	"crypto/sha256"
	"encoding/hex"
	"reflect"
	"strings"
	"testing"
)

func TestStatementsAreNamedAndWithoutComments(t *testing.T) {
	t.Parallel()
	c, err := Config{Schema: "Own", Table: "keys"}.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	s := newStatements(c)
	fields := reflect.ValueOf(s)
	for i := range fields.NumField() {
		if fields.Field(i).Kind() != reflect.String {
			continue
		}
		name, text := fields.Type().Field(i).Name, fields.Field(i).String()
		if text == "" || strings.ContainsAny(text, "{}") || strings.Contains(text, "\n--") {
			t.Errorf("%s: %q", name, text)
		}
		if strings.Contains(text, "SELECT") && !strings.Contains(text, `"Own"."keys`) {
			t.Errorf("%s does not name the table", name)
		}
	}
}

func TestMigrationsRecordThemselves(t *testing.T) {
	t.Parallel()
	list, err := Migrations(Config{})
	if err != nil {
		t.Fatal(err)
	}
	for i, m := range list {
		if m.Version != i+1 || !strings.Contains(m.SQL, `INSERT INTO "public"."reprise_records_migrations" (version) VALUES (`+string(rune('0'+m.Version))+`)`) {
			t.Errorf("migration %d is %d and does not record that:\n%s", i+1, m.Version, m.SQL)
		}
	}
}

// TestMigrationsNeverChange: what was applied somewhere stays as it is; a change is
// another migration. When it needs another form of a condition that the migration shares
// with the statements, the migration gets its own copy of the old one.
func TestMigrationsNeverChange(t *testing.T) {
	t.Parallel()
	golden := []string{
		"3f7c60ddaa47b9ec863c6477e69a38ec52ed0315f3316d5a0faa0709c977cae0",
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

// TestNamesFit: PostgreSQL cuts longer names, and two that were cut could be the same.
func TestNamesFit(t *testing.T) {
	t.Parallel()
	c := Config{Table: strings.Repeat("t", maxTable)}
	s := newNames(c)
	for _, name := range append(s.functions, s.migrations, s.expiry) {
		if parts := strings.Split(strings.ReplaceAll(name, `"`, ""), "."); len(parts[len(parts)-1]) > 63 {
			t.Errorf("%s is longer than 63 bytes", name)
		}
	}
}
