package reprisepg

import (
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
	for name, test := range map[string]struct{ settings, want string }{
		"good":                                   {"", ""},
		"an old server":                          {"server_version_num=149999", "server-version"},
		"a standby":                              {"recovery=on", "in-recovery!"},
		"read-only":                              {"default_transaction_read_only=on", "read-only!"},
		"commits that are not flushed":           {"synchronous_commit=off", "synchronous-commit!"},
		"local commits without standbys":         {"synchronous_commit=local", ""},
		"local commits beside standbys":          {"synchronous_commit=local synchronous_standby_names=* notices=on", "synchronous-commit"},
		"confirmed commits":                      {"synchronous_standby_names=* notices=on", ""},
		"confirmed commits, unobserved":          {"synchronous_standby_names=*", "notices"},
		"observed without standbys":              {"notices=on", ""},
		"no fsync":                               {"fsync=off", "fsync!"},
		"no full pages":                          {"full_page_writes=off", "full-page-writes!"},
		"a stricter isolation":                   {"default_transaction_isolation=serializable", "isolation"},
		"a pooler":                               {"pooler=on", ""},
		"statements that end early":              {"statement_timeout=59999", "statement-timeout"},
		"statements that last as long as needed": {"statement_timeout=60000 idle_in_transaction_session_timeout=60000 transaction_timeout=60000", ""},
		"handlers that may not pause":            {"idle_in_transaction_session_timeout=1000", "idle-timeout"},
		"transactions that end early":            {"transaction_timeout=1000", "transaction-timeout"},
		"no autovacuum":                          {"autovacuum=off", "autovacuum"},
		"no counts for it":                       {"track_counts=off", "autovacuum"},
		"statements that the session remembers":  {"statement_cache=on", ""},
		"both":                                   {"pooler=on statement_cache=on", "statement-cache"},
	} {
		is := map[string]string{"server_version_num": "150000", "default_transaction_isolation": "read committed", "statement_timeout": "0"}
		for setting := range strings.FieldsSeq(test.settings) {
			name, value, _ := strings.Cut(setting, "=")
			is[name] = value
		}
		if codes := strings.Join(codesOf(findings(is, time.Minute)), " "); codes != test.want {
			t.Errorf("%s: %q, want %q", name, codes, test.want)
		}
	}
}
