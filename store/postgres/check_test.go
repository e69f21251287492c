package reprisepg

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/reprise-go/reprise/core/store"
)

// codesOf are the codes of findings, unsafe ones with a mark.
func codesOf(list []store.Finding) (codes []string) {
	for _, f := range list {
		if f.Severity == store.Unsafe {
			f.Code += "!"
		}
		codes = append(codes, f.Code)
	}
	return codes
}

// TestCheckFindsEachSetting: a setting that breaks a guarantee is unsafe, one that
// costs something is a warning, and good settings are none.
func TestCheckFindsEachSetting(t *testing.T) {
	t.Parallel()
	good := settings{
		version: oldestServer, synchronousCommit: "on", fsync: "on", fullPages: "on", readOnly: "off", isolation: "read committed",
		vacuums: true, needed: time.Minute,
	}
	for name, test := range map[string]struct {
		change func(*settings)
		want   string
	}{
		"good":                                   {func(*settings) {}, ""},
		"an old server":                          {func(s *settings) { s.version = oldestServer - 1 }, "server-version"},
		"a standby":                              {func(s *settings) { s.recovery = true }, "in-recovery!"},
		"read-only":                              {func(s *settings) { s.readOnly = "on" }, "read-only!"},
		"commits that are not flushed":           {func(s *settings) { s.synchronousCommit = "off" }, "synchronous-commit!"},
		"local commits without standbys":         {func(s *settings) { s.synchronousCommit = "local" }, ""},
		"local commits beside standbys":          {func(s *settings) { s.synchronousCommit, s.standbys, s.observed = "local", "*", true }, "synchronous-commit"},
		"confirmed commits":                      {func(s *settings) { s.standbys, s.observed = "*", true }, ""},
		"confirmed commits, unobserved":          {func(s *settings) { s.standbys = "*" }, "notices"},
		"observed without standbys":              {func(s *settings) { s.observed = true }, ""},
		"no fsync":                               {func(s *settings) { s.fsync = "off" }, "fsync!"},
		"no full pages":                          {func(s *settings) { s.fullPages = "off" }, "full-page-writes!"},
		"a stricter isolation":                   {func(s *settings) { s.isolation = "serializable" }, "isolation"},
		"a pooler":                               {func(s *settings) { s.pooled = true }, ""},
		"statements that end early":              {func(s *settings) { s.statement = time.Minute - 1 }, "statement-timeout"},
		"statements that last as long as needed": {func(s *settings) { s.statement, s.idle, s.transaction = time.Minute, time.Minute, time.Minute }, ""},
		"handlers that may not pause":            {func(s *settings) { s.idle = time.Second }, "idle-timeout"},
		"transactions that end early":            {func(s *settings) { s.transaction = time.Second }, "transaction-timeout"},
		"no autovacuum":                          {func(s *settings) { s.vacuums = false }, "autovacuum"},
		"statements that the session remembers":  {func(s *settings) { s.caches = true }, ""},
		"both":                                   {func(s *settings) { s.pooled, s.caches = true, true }, "statement-cache"},
	} {
		s := good
		test.change(&s)
		for _, f := range s.findings() {
			if !slices.Contains(findingCodes, f.Code) {
				t.Errorf("%s: findingCodes lacks %s", name, f.Code)
			}
		}
		if got := strings.Join(codesOf(s.findings()), " "); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

func TestCheckFindsEachFaultOfTheTable(t *testing.T) {
	t.Parallel()
	lacking := tableState{unlogged: true, unvacuumed: true, others: "PUBLIC", overdue: 1, missing: []string{"SELECT on x", "DELETE on x"}}
	got := lacking.findings()
	for _, f := range got {
		if !slices.Contains(findingCodes, f.Code) {
			t.Errorf("findingCodes lacks %s", f.Code)
		}
	}
	if !slices.Equal(codesOf(got), []string{"unlogged!", "autovacuum", "other-grants", "unpurged", "privileges!"}) || !strings.Contains(got[4].Detail, "SELECT on x, DELETE on x; give it what reprisepg.Grants returns") {
		t.Errorf("%+v", got)
	}
	if got := (&tableState{}).findings(); got != nil {
		t.Errorf("good tables: %+v", got)
	}
}
