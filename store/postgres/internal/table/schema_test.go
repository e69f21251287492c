package table

import (
	"strings"
	"testing"

	"github.com/reprise-go/reprise/core/store"
)

// TestSchemaVersionFindings: a schema that is missing, older, or without a function that
// this release calls is unsafe, and a newer one is a warning.
func TestSchemaVersionFindings(t *testing.T) {
	t.Parallel()
	for found, want := range map[schema]struct{ code, text string }{
		{0, 3, false}: {"schema-version!", "do not exist"},
		{2, 3, false}: {"schema-version!", "has version 2 and this release needs 3"},
		{4, 3, false}: {"schema-version", "newer than the 3"},
		{4, 3, true}:  {"schema-version!", "has version 4 and lacks a function that this release calls"},
		{3, 3, true}:  {"schema-version!", "has version 3 and lacks a function that this release calls"},
	} {
		f, noticed := found.finding()
		if codes := codesOf([]store.Finding{f}); !noticed || codes[0] != want.code || !strings.Contains(f.Detail, want.text) {
			t.Errorf("%+v: %v, %s, %s", found, noticed, codes[0], f.Detail)
		}
	}
	if f, noticed := (schema{applied: 3, known: 3}).finding(); noticed {
		t.Errorf("the schema of this release: %+v", f)
	}
}
