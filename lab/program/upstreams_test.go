package program

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/reprise-go/reprise/servers"
)

// service is an upstream process in some language. The file of its effects has a line for
// each request.
type service struct{ url, effects string }

// languages has the command of a program for each language, which serves at an address,
// also in $LISTEN, and appends its effects to a file, also in $EFFECTS.
var languages = map[string]func(tb testing.TB, address, effects string) []string{
	"nginx": func(tb testing.TB, address, effects string) []string {
		tb.Helper()
		text, err := os.ReadFile(filepath.Join("testdata", "upstreams", "reads.conf"))
		must(tb, err)
		_, conf, _ := strings.Cut(string(text), "\n")
		dir := filepath.Dir(effects)
		file := filepath.Join(dir, "nginx.conf")
		must(tb, os.WriteFile(file, []byte(strings.NewReplacer("DIR", dir, "LISTEN", address, "EFFECTS", effects).Replace(conf)), 0o600))
		return []string{"nginx", "-p", dir, "-c", file, "-e", "stderr"}
	},
	"wsgi": func(testing.TB, string, string) []string { return []string{"python3", "testdata/upstreams/reads.py"} },
	"node": func(testing.TB, string, string) []string { return []string{"node", "testdata/upstreams/reads.js"} },
}

// startService starts the upstream of a language. Without its program the test is
// skipped, unless REPRISE_TEST_REQUIRE has it.
func startService(tb testing.TB, language string) *service {
	tb.Helper()
	address, effects := servers.FreeAddr(tb), filepath.Join(tb.TempDir(), "effects")
	command := languages[language](tb, address, effects)
	if _, err := exec.LookPath(command[0]); err != nil {
		if servers.Required(tb, command[0]) {
			tb.Fatal(err)
		}
		tb.Skip(err)
	}
	cmd := exec.CommandContext(context.WithoutCancel(tb.Context()), command[0], command[1:]...)
	cmd.Env = append(os.Environ(), "LISTEN="+address, "EFFECTS="+effects)
	must(tb, cmd.Start())
	tb.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	await(tb, "the upstream", func() bool { return listens(address) })
	return &service{"http://" + address, effects}
}
