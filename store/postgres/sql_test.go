package reprisepg

import (
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
		name, text := fields.Type().Field(i).Name, fields.Field(i).String()
		if text == "" || strings.ContainsAny(text, "{}") || strings.Contains(text, "\n--") {
			t.Errorf("%s: %q", name, text)
		}
		if strings.Contains(text, "SELECT") && !strings.Contains(text, `"Own"."keys"`) {
			t.Errorf("%s does not name the table", name)
		}
		if strings.Contains(text, "nextval(") && !strings.Contains(text, `nextval('"Own"."keys_fence"')`) {
			t.Errorf("%s does not name the sequence", name)
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

// TestNamesFit: PostgreSQL cuts longer names, and two that were cut could be the same.
func TestNamesFit(t *testing.T) {
	t.Parallel()
	c := Config{Table: strings.Repeat("t", maxTable)}
	s := newStatements(c)
	for _, name := range []string{s.fence, s.migrations, s.expiry} {
		if parts := strings.Split(strings.ReplaceAll(name, `"`, ""), "."); len(parts[len(parts)-1]) > 63 {
			t.Errorf("%s is longer than 63 bytes", name)
		}
	}
}

func TestServerMajor(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]int{"15.18 (Debian 15.18-0+deb12u1)": 15, "17": 17, "18beta1": 18, "": 0, "x": 0} {
		if got := serverMajor(version); got != want {
			t.Errorf("serverMajor(%q) = %d, want %d", version, got, want)
		}
	}
}
