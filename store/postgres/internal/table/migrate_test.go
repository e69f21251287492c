package table

import (
	"strings"
	"testing"
)

func TestMigrationsRecordThemselves(t *testing.T) {
	t.Parallel()
	list, err := Migrations(Options{Schema: "public", Table: "reprise_records"})
	if err != nil {
		t.Fatal(err)
	}
	for i, m := range list {
		if m.Version != i+1 || !strings.Contains(m.Up, `INSERT INTO "public"."reprise_records_migrations" (version) VALUES (`+string(rune('0'+m.Version))+`)`) {
			t.Errorf("migration %d is %d and does not record that:\n%s", i+1, m.Version, m.Up)
		}
	}
}
