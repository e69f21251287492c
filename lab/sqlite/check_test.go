package sqlite

import (
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/servers"
	reprisesqlite "github.com/reprise-go/reprise/store/sqlite"
)

// TestOpenRefusesUnsafeSettings: and Check names them.
func TestOpenRefusesUnsafeSettings(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		settings string
		conns    int
		bare     bool // without the table
		disk     bool // one that is nearly full
		want     []string
		refused  bool
	}{
		"as documented":              {settings: drivers[0].settings},
		"no WAL":                     {settings: "?_pragma=journal_mode(DELETE)", want: []string{"journal-mode"}},
		"no journal":                 {settings: "?_pragma=journal_mode(MEMORY)", want: []string{"journal-mode"}, refused: true},
		"NORMAL":                     {settings: "?_pragma=journal_mode(WAL)&_pragma=synchronous(NORMAL)", want: []string{"synchronous"}},
		"OFF":                        {settings: "?_pragma=journal_mode(WAL)&_pragma=synchronous(OFF)", want: []string{"synchronous"}, refused: true},
		"uncommitted":                {settings: drivers[0].settings + "&cache=shared&_pragma=read_uncommitted(1)", want: []string{"read-uncommitted", "schema"}, refused: true},
		"one connection":             {settings: drivers[0].settings, conns: 1, want: []string{"pool-size"}},
		"no table":                   {settings: drivers[0].settings, bare: true, want: []string{"schema"}, refused: true},
		"memory":                     {settings: "memory", want: []string{"in-memory", "schema"}, bare: true, refused: true},
		"memory, one":                {settings: "memory", conns: 1, want: []string{"in-memory"}},
		"a disk that is nearly full": {settings: drivers[0].settings, disk: true, want: []string{"disk"}},
		"a read-only file":           {settings: drivers[0].settings + "&_pragma=query_only(1)", refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if c.disk {
				dir = servers.NewDisk(t, 2<<20, false).Dir()
				labtest.Must(t, os.WriteFile(filepath.Join(dir, "others"), make([]byte, 7<<18), 0o600))
			}
			url := "file:" + filepath.Join(dir, "records.db")
			if c.settings == "memory" {
				url = ":memory:"
			}
			if !c.bare && url != ":memory:" {
				db := drivers[0].open(t, filepath.Join(dir, "records.db"))
				labtest.Must(t, reprisesqlite.Migrate(t.Context(), db, reprisesqlite.Config{}))
				labtest.Must(t, db.Close())
			}
			if url != ":memory:" {
				url += c.settings
			}
			db, err := sql.Open("sqlite", url)
			labtest.Must(t, err)
			defer db.Close()
			db.SetMaxOpenConns(c.conns)
			if !c.bare && url == ":memory:" {
				labtest.Must(t, reprisesqlite.Migrate(t.Context(), db, reprisesqlite.Config{}))
			}
			st, err := reprisesqlite.New(db, reprisesqlite.Config{})
			labtest.Must(t, err)
			list, err := st.Check(t.Context())
			var codes []string
			for _, f := range list {
				if f.Code != "disk" || c.disk { // the one of the machine may be nearly full
					codes = append(codes, f.Code)
				}
			}
			if err != nil || !slices.Equal(codes, c.want) {
				t.Errorf("found %v, %v; want %v", codes, err, c.want)
			}
			if _, err := reprisesqlite.Open(t.Context(), db, reprisesqlite.Config{}); c.refused != errors.Is(err, store.ErrMisconfigured) || !c.refused && err != nil {
				t.Errorf("Open: %v, refused %t", err, c.refused)
			}
		})
	}
}
