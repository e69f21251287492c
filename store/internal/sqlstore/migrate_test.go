package sqlstore

import (
	"testing"

	"github.com/reprise-go/reprise/core/store"
)

// TestMigrationsRecordThemselves: in both directions, with each statement for another
// tool in a block of its own.
func TestMigrationsRecordThemselves(t *testing.T) {
	t.Parallel()
	d := &Dialect{
		Quote:    func(name string) string { return "'" + name + "'" },
		Versions: "CREATE {migrations}",
		Steps:    []Step{{"records", []string{"CREATE {records}", "INDEX {due}"}, []string{"DROP {records}"}}, {"next", []string{"ALTER {records}"}, []string{"BACK {records}"}}},
	}
	list := d.MigrationsOf("t")
	for i, want := range []store.Migration{
		{
			Version: 1, Name: "0001_records",
			SQL:  "CREATE 't_migrations';\n\nCREATE 't';\n\nINDEX 't_due';\n\nINSERT INTO 't_migrations' (version) VALUES (1);\n",
			Down: "DROP 't';\n\nDROP TABLE 't_migrations';\n",
		},
		{
			Version: 2, Name: "0002_next",
			SQL:  "ALTER 't';\n\nINSERT INTO 't_migrations' (version) VALUES (2);\n",
			Down: "BACK 't';\n\nDELETE FROM 't_migrations' WHERE version = 2;\n",
		},
	} {
		if m := list[i]; m.Version != want.Version || m.Name != want.Name || m.SQL != want.SQL || m.Down != want.Down {
			t.Errorf("migration %d is %+v", i+1, m)
		}
	}
	const want = "-- +goose Up\n-- +goose StatementBegin\nALTER 't';\n-- +goose StatementEnd\n" +
		"-- +goose StatementBegin\nINSERT INTO 't_migrations' (version) VALUES (2);\n-- +goose StatementEnd\n" +
		"\n-- +goose Down\n-- +goose StatementBegin\nBACK 't';\n-- +goose StatementEnd\n" +
		"-- +goose StatementBegin\nDELETE FROM 't_migrations' WHERE version = 2;\n-- +goose StatementEnd\n"
	if got := list[1].Goose; got != want {
		t.Errorf("for goose: %s", got)
	}
}
