package repriseredis

import (
	"errors"
	"strings"
	"testing"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/redis/internal/record"
)

// A server or a user that refuses one command or script, or answers wrong, is found
// before an operation has run.
func TestOpenTriesEveryOperation(t *testing.T) {
	t.Parallel()
	type trial struct {
		command any    // or the digest of a script
		answer  string // to it
		want    error
		step    string
	}
	const noPermission, tooOld = "-NOPERM this user has no permissions to run it\r\n", "-ERR unknown command\r\n"
	trials := []trial{
		{"set", bulk(string(recordOfClaim(store.Fingerprint{31: 1}))), store.ErrMisconfigured, "trying to claim"},
		{record.RenewScript.Digest, bulk("X"), store.ErrMisconfigured, "trying to renew"},
		{record.UnknownScript.Digest, bulk("X"), store.ErrMisconfigured, "trying to mark an outcome as unknown"},
		{record.CompleteScript.Digest, bulk("X"), store.ErrMisconfigured, "trying to complete"},
		{"pexpiretime", noPermission, store.ErrMisconfigured, "trying to read a record"},
		{"wait", noPermission, store.ErrMisconfigured, ""},
		{"wait", tooOld, store.ErrMisconfigured, ""},
		{"wait", "-ERR this service does not wait\r\n", store.ErrMisconfigured, ""},
		{"wait", "-ERR WAIT cannot be used with replica instances.\r\n", store.ErrUnavailable, ""},
		{"wait", ":0\r\n", store.ErrNotReplicated, ""},
	}
	for _, s := range []*record.Script{record.ClaimScript, record.RenewScript, record.CompleteScript, record.ReleaseScript, record.UnknownScript, record.InspectScript, record.ResolveScript} {
		trials = append(trials,
			trial{s.Digest, noPermission, store.ErrMisconfigured, ""},
			trial{s.Digest, "-ERR Error compiling script (new function): user_script:1: near '#'\r\n", store.ErrMisconfigured, ""},
			trial{s.Digest, "-BUSY Redis is busy running a script.\r\n", store.ErrUnavailable, ""},
			trial{s.Digest, bulk("?"), store.ErrUnknown, ""},
		)
	}
	for _, c := range trials {
		f := newFake(t, soundServer("", func(command []string) string {
			name := strings.ToLower(command[0])
			if name == c.command || len(command) > 1 && command[1] == c.command {
				return c.answer
			}
			return ""
		}))
		config := Config{Prefix: servicePrefix}
		switch c.command {
		case "pexpiretime":
			f.expiry = c.answer
		case "wait":
			config.Durability = Acked(1)
		}
		opened, err := Open(t.Context(), newClient(t, f), config)
		if !errors.Is(err, c.want) || opened != nil || !strings.Contains(err.Error(), c.step) {
			t.Errorf("%v answered %q: %v, want %v, %s", c.command, c.answer, err, c.want, c.step)
		}
	}
}
