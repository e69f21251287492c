package repriseredis

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/reprise-go/reprise/core/store"
)

func TestFailuresHaveAClass(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		answer string
		want   error
		calls  int // how often the native claim is sent
	}{
		{"demoted", "-READONLY You can't write against a read only replica.\r\n", store.ErrUnavailable, 4},
		{"loading", "-LOADING Redis is loading the dataset in memory\r\n", store.ErrUnavailable, 4},
		{"cluster down", "-CLUSTERDOWN The cluster is down\r\n", store.ErrUnavailable, 4},
		{"busy", "-BUSY Redis is busy running a script.\r\n", store.ErrUnavailable, 1},
		{"disk", "-MISCONF Errors writing to the AOF file: No space left on device\r\n", store.ErrUnavailable, 1},
		{"too few replicas", "-NOREPLICAS Not enough good replicas to write.\r\n", store.ErrUnavailable, 1},
		{"memory", "-OOM command not allowed when used memory > 'maxmemory'.\r\n", store.ErrFull, 1},
		{"type", "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n", store.ErrCorrupt, 1},
		{"corrupt", bulk("!"), store.ErrCorrupt, 1},
		{"another version", bulk("\x33" + strings.Repeat("h", 70)), store.ErrCorrupt, 1},
		{"password", "-NOAUTH Authentication required.\r\n", store.ErrMisconfigured, 1},
		{"permission", "-NOPERM this user has no permissions to run the 'evalsha' command\r\n", store.ErrMisconfigured, 1},
		{"permission in a script", "-ERR The user executing the script can't run this command or subcommand script: 00, on @user_script:1.\r\n", store.ErrMisconfigured, 1},
		{"permission in a script of a newer server", "-ERR ACL failure in script: User app has no permissions to run the 'set' command script: 00, on @user_script:1.\r\n", store.ErrMisconfigured, 1},
		{"too old", "-ERR Error compiling script (new function): user_script:1: unexpected symbol near '#'\r\n", store.ErrMisconfigured, 1},
		{"not a cluster client", "-MOVED 3999 127.0.0.1:1\r\n", store.ErrMisconfigured, 1},
		{"an error of a proxy", "-ERR upstream failure\r\n", store.ErrUnknown, 1},
		{"always cut", cut, store.ErrUnknown, 4},
		{"empty", bulk(""), store.ErrCorrupt, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := newFake(t, func(_, _ int, _ []string) string { return c.answer })
			_, err := claim(t, newStore(t, f, Config{}))
			if !errors.Is(err, c.want) {
				t.Errorf("claim: %v, want %v", err, c.want)
			}
			if n := strings.Count(f.seen(), "set"); n != c.calls {
				t.Errorf("sent %d times, want %d: %s", n, c.calls, f.seen())
			}
		})
	}
}

func TestErrorsShowNoOwnerAndNoPayload(t *testing.T) {
	t.Parallel()
	for _, answer := range []func([]string) string{
		func([]string) string { return "-ERR upstream failure\r\n" },
		func(command []string) string {
			return "-ERR unknown command '" + command[0] + "', with args beginning with: '" + strings.Join(command[1:], "' '") + "'\r\n"
		},
	} {
		f := newFake(t, func(_, _ int, command []string) string { return answer(command) })
		s := newStore(t, f, Config{})
		err := s.Complete(t.Context(), store.CompleteRequest{Owner: store.Owner([]byte("sixteen-bytes-ok")), Payload: []byte("secret"), Policy: store.Policy{Retention: time.Hour}})
		if err == nil || strings.Contains(err.Error(), "sixteen") || strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "args") {
			t.Errorf("error %q", err)
		}
	}
	c := &command{fixed: blob("sixteen-bytes-ok")}
	if got := c.fixed.String(); got != "[16 bytes]" {
		t.Errorf("a traced argument reads %q", got)
	}
}
