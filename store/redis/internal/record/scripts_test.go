package record

import (
	"strings"
	"testing"
)

// The flags of these scripts change no answer, so lab does not miss them: a server
// refuses a write of theirs, and without the second one it shows a count no records of
// other slots.
func TestScriptsThatOnlyReadSaySo(t *testing.T) {
	t.Parallel()
	for script, flags := range map[*Script]string{InspectScript: readOnly, CountScript: scanning} {
		if source, _ := script.Source.(string); !strings.HasPrefix(source, flags) || !strings.HasPrefix(flags, "#!lua flags=no-writes") {
			t.Errorf("a script starts with %.60q, want %q", source, flags)
		}
	}
	if !strings.Contains(scanning, ",allow-cross-slot-keys\n") {
		t.Errorf("a count has the flags %q", scanning)
	}
}
