package repriseredis

import (
	"errors"
	"strings"
	"testing"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/redis/internal/record"
)

// A server or a user that refuses one script is found before an operation has run.
func TestOpenTriesEveryOperation(t *testing.T) {
	t.Parallel()
	for _, s := range []*record.Script{record.ClaimScript, record.RenewScript, record.CompleteScript, record.ReleaseScript, record.UnknownScript, record.InspectScript, record.ResolveScript} {
		for answer, want := range map[string]error{
			"-NOPERM this user has no permissions to run the 'set' command\r\n":       store.ErrMisconfigured,
			"-ERR Error compiling script (new function): user_script:1: near '#'\r\n": store.ErrMisconfigured,
			"-BUSY Redis is busy running a script.\r\n":                               store.ErrUnavailable,
			bulk("?"): store.ErrUnknown,
		} {
			f := newFake(t, soundServer("", func(command []string) string {
				if len(command) > 1 && command[1] == s.Digest {
					return answer
				}
				return ""
			}))
			if store, err := Open(t.Context(), newClient(t, f), Config{Prefix: servicePrefix}); !errors.Is(err, want) || store != nil {
				t.Errorf("with %q: %v, want %v", answer, err, want)
			}
		}
	}
}

// A server with wrong answers is as bad as one that refuses.
func TestOpenFindsAWrongAnswer(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		step, command string
		digest        any // of a script; nil: any
		answer        string
	}{
		{"claim", "set", nil, bulk(string(recordOfClaim(store.Fingerprint{31: 1})))},
		{"renew", "evalsha", record.RenewScript.Digest, bulk("X")},
		{"mark an outcome as unknown", "evalsha", record.UnknownScript.Digest, bulk("X")},
		{"complete", "evalsha", record.CompleteScript.Digest, bulk("X")},
		{"read a record", "pexpiretime", nil, "-NOPERM this user has no permissions to run the 'pexpiretime' command\r\n"},
	} {
		f := newFake(t, soundServer("", func(command []string) string {
			if command[0] == c.command && (c.digest == nil || command[1] == c.digest) {
				return c.answer
			}
			return ""
		}))
		if c.command == "pexpiretime" {
			f.expiry = c.answer
		}
		store, err := Open(t.Context(), newClient(t, f), Config{Prefix: servicePrefix})
		if err == nil || store != nil || !strings.Contains(err.Error(), "trying to "+c.step) {
			t.Errorf("%s answered %q: %v, want an error that says so", c.step, c.answer, err)
		}
	}
}

func TestOpenFindsARefusedWait(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]error{
		"-NOPERM this user has no permissions to run the 'wait' command\r\n": store.ErrMisconfigured,
		"-ERR unknown command 'wait'\r\n":                                    store.ErrMisconfigured,
		"-ERR this service does not wait\r\n":                                store.ErrMisconfigured,
		"-ERR WAIT cannot be used with replica instances.\r\n":               store.ErrUnavailable,
		":0\r\n": store.ErrNotReplicated,
	} {
		f := newFake(t, soundServer("", func(command []string) string {
			if strings.EqualFold(command[0], "wait") {
				return answer
			}
			return ""
		}))
		if store, err := Open(t.Context(), newClient(t, f), Config{Prefix: servicePrefix, Durability: Acked(1)}); !errors.Is(err, want) || store != nil {
			t.Errorf("with %q: %v, want %v", answer, err, want)
		}
	}
}
