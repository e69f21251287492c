package record

import (
	"crypto/sha1"
	"encoding/hex"
	"strings"
	"testing"
)

// A script is known by its digest, and declares rights that let it work while memory is
// full. Only the claim declares none.
func TestScriptsDeclareTheirRights(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		script *Script
		flags  string
	}{
		"claim":    {ClaimScript, ""},
		"renew":    {RenewScript, "#!lua flags=allow-oom\n"},
		"complete": {CompleteScript, "#!lua flags=allow-oom\n"},
		"release":  {ReleaseScript, "#!lua flags=allow-oom\n"},
		"unknown":  {UnknownScript, "#!lua flags=allow-oom\n"},
		"inspect":  {InspectScript, "#!lua flags=no-writes\n"},
		"resolve":  {ResolveScript, "#!lua flags=allow-oom\n"},
		"count":    {CountScript, "#!lua flags=no-writes,allow-cross-slot-keys\n"},
	} {
		source, _ := c.script.Source.(string)
		if c.flags == "" && strings.HasPrefix(source, "#!") || !strings.HasPrefix(source, c.flags) {
			t.Errorf("%s starts with %.30q, want %q", name, source, c.flags)
		}
		if sum := sha1.Sum([]byte(source)); c.script.Digest != hex.EncodeToString(sum[:]) {
			t.Errorf("%s has the digest %v", name, c.script.Digest)
		}
	}
}
