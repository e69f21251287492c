package program

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/servers"
)

// frameworks have a test server each, in lab/NAME/testserver.
var frameworks = []string{"nethttp", "gin", "echo", "echo5", "fiber", "fiber3"}

// framework is the built test server of a framework.
type framework struct {
	path        string
	unavailable string // why a module that it needs is missing
	err         error
}

var builtFrameworks = func() map[string]func() framework {
	all := make(map[string]func() framework)
	for _, name := range frameworks {
		for _, program := range []string{testserverProgram, ownProgram} {
			all[name+program] = sync.OnceValue(func() framework { return buildFramework(name, program) })
		}
	}
	return all
}()

// The programs of a framework: with the adapter, and with the framework's own middleware
// instead, which the two modules of Fiber have.
const (
	testserverProgram = "testserver"
	ownProgram        = "own"
)

// buildFramework builds a program of a framework as its module alone has it.
func buildFramework(name, program string) framework {
	f := framework{path: filepath.Join(programs, program+"-"+name)}
	command := func(args ...string) ([]byte, error) {
		cmd := exec.Command("go", args...) //nolint:noctx // the tests share its result
		cmd.Dir, cmd.Env = filepath.Join("..", name), append(os.Environ(), "GOWORK=off")
		return cmd.CombinedOutput()
	}
	if out, err := command("list", "-deps", "./"+program); err != nil {
		f.unavailable = fmt.Sprintf("%v: %s", err, out)
		return f
	}
	if out, err := command("build", "-o", f.path, "./"+program); err != nil {
		f.err = fmt.Errorf("build %s of %s: %w\n%s", program, name, err, out)
	}
	return f
}

// framed returns a program of a framework. A test whose framework cannot be had
// is skipped, unless REPRISE_TEST_REQUIRE names it.
func framed(t *testing.T, name, program string) string {
	t.Helper()
	f := builtFrameworks[name+program]()
	switch {
	case f.err != nil:
		t.Fatal(f.err)
	case f.unavailable != "" && name != "nethttp" && !servers.Required(t, name):
		t.Skip(f.unavailable)
	case f.unavailable != "":
		t.Fatal(f.unavailable)
	}
	return f.path
}

// serve starts a test server and returns its address. It is killed with the test.
func serve(t *testing.T, name string, flags ...string) string {
	t.Helper()
	return start(t, framed(t, name, testserverProgram), flags...)
}

func start(t *testing.T, path string, flags ...string) string {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	cmd := exec.CommandContext(ctx, path, flags...)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		_ = cmd.Wait() // it was killed
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("the test server said %q: %v", line, err)
	}
	return "http://" + strings.TrimSpace(strings.TrimPrefix(line, "listening on "))
}

// notShown fails t unless exactly these cases are not shown.
func (j *judgement) notShown(t *testing.T, want ...string) {
	t.Helper()
	if got := j.in("not shown"); !slices.Equal(got, want) {
		t.Errorf("not shown: %q, want %q", got, want)
	}
}

// The cases that one server without crashes cannot show.
var (
	severalAddresses = []string{"concurrency/addresses"}
	crashes          = []string{"crashes/kept", "crashes/decided"}
)

// The adapters differ in the server below and in the capture of responses, so short tests
// ask some of them for the rest only.
func TestJudgePassesEveryAdapter(t *testing.T) {
	t.Parallel()
	for _, name := range frameworks {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			base := serve(t, name, "-adapter", name, "-store", "memory", "-retention", judgedRetention.String())
			args, hidden := cooperation(base), slices.Concat([]string{"presence/missing", "presence/link"}, severalAddresses, crashes)
			if testing.Short() && name != "nethttp" && name != "fiber3" {
				args, hidden = append(args, "--only", "replay,framing,large,failures,methods,concurrency/disconnect"), []string{}
			} else {
				args = append(args, "--retention", judgedRetention.String())
			}
			j := judge(t, args...)
			j.notMet(t, keptOpen[name]...)
			j.notShown(t, hidden...)
		})
	}
}

// keptOpen has the frameworks whose servers keep a connection open after a request with a
// length and a transfer coding, with any handler.
var keptOpen = map[string][]string{"nethttp": {keepsOpen}, "gin": {keepsOpen}, "echo": {keepsOpen}, "echo5": {keepsOpen}}

func TestJudgeSaysThatALimitEndedTheRun(t *testing.T) {
	t.Parallel()
	j := judge(t, serve(t, "nethttp")+"/t/op", "--max-requests", "40")
	j.notMet(t)
	if j.Ended != "limit reached: 40 requests" {
		t.Errorf("ended: %q", j.Ended)
	}
}

func TestJudgePassesAGuardThatRequiresKeys(t *testing.T) {
	t.Parallel()
	base := serve(t, "nethttp", "-required")
	j := judge(t, append(cooperation(base), "--only", "presence,key,binding")...)
	j.notMet(t)
	j.notShown(t, "key/trailer", "presence/optional")
}

// A policy of Reprise meets each profile, and the default one breaks the rules of others
// where they differ.
func TestJudgeTellsProfilesApart(t *testing.T) {
	t.Parallel()
	for profile, c := range profilePolicies {
		t.Run(profile, func(t *testing.T) {
			t.Parallel()
			judged := func(policy protocol.Config, only string) *judgement {
				base := judgedServer(t, policy, nil, nil, nil)
				args := append(cooperation(base), "--profile", profile, "--other", base+"/t/other", "--body", `{"judge":"a","n":1,"list":[1,2]}`)
				if testing.Short() && only != "" {
					args = append(args, "--only", groups(strings.Fields(only)))
				}
				return judge(t, args...)
			}
			judged(c.policy, "").notMet(t, keepsOpen)
			judged(protocol.Config{}, c.unlike).notMet(t, strings.Fields(c.unlike)...)
		})
	}
}

// profilePolicies are policies that meet the profiles, and the cases that the default one
// breaks.
var profilePolicies = map[string]struct {
	policy protocol.Config
	unlike string
}{
	"draft-07": {unlike: keepsOpen},
	"stripe":   {policy: protocol.Config{Preset: reprise.AtMostOnce}, unlike: "failures/kept " + keepsOpen},
	"acp": {
		policy: protocol.Config{
			Required: true, Endpoint: "op", Fingerprint: protocol.Fingerprinting{Func: protocol.CanonicalJSON},
			Problems: protocol.ProblemFormat{Write: acpProblem},
		},
		unlike: "presence/missing binding/json framing/both problems/codes",
	},
}

// acpProblem writes refusals in the form of the Agentic Commerce Protocol.
func acpProblem(_ context.Context, _ *protocol.Request, p protocol.Problem) protocol.Response {
	code := map[protocol.Code]string{
		protocol.CodeKeyMissing: "idempotency_key_required", protocol.CodeInProgress: "idempotency_in_flight", protocol.CodeKeyReused: "idempotency_conflict",
	}[p.Code]
	return protocol.Response{
		Status: p.Status, Body: fmt.Appendf(nil, `{"type":"invalid_request","code":%q,"message":%q}`, code, p.Detail),
		Header: protocol.NewHeader(protocol.Field{Name: "Content-Type", Value: "application/json"}),
	}
}

func TestJudgeSeesSeveralAddressesOfAService(t *testing.T) {
	t.Parallel()
	redis := servers.Redis.Shared(t).Addr()
	flags := []string{"-store", "redis", "-redis-url", "redis://" + redis}
	one, two := serve(t, "nethttp", flags...), serve(t, "nethttp", flags...)
	op := "/t/" + labtest.RedisPrefix() // the servers count their runs apart, so numbers alone do not tell runs apart
	only := []string{"--only", "concurrency/addresses"}
	j := judge(t, append([]string{one + op, "--also", two + op}, only...)...)
	j.notMet(t)
	j.notShown(t)

	apart := serve(t, "nethttp", "-store", "memory")
	j = judge(t, append([]string{one + op, "--also", apart + op}, only...)...)
	j.notMet(t, severalAddresses...)
}

// The service is killed and started again while requests run.
func TestJudgeSeesCrashes(t *testing.T) {
	t.Parallel()
	for name, c := range crashingServices {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			pid := filepath.Join(dir, "pid")
			addr := servers.FreeAddr(t)
			script := fmt.Sprintf(`if kill -9 $(cat %[1]s); then for i in $(seq 100); do kill -0 $(cat %[1]s) || break; sleep 0.05; done; fi 2>/dev/null
%[2]s -addr %[3]s -sqlite-file %[4]s/records %[5]s & echo $! >%[1]s`, pid, framed(t, "nethttp", testserverProgram), addr, dir, c.flags)
			t.Cleanup(func() {
				_ = exec.CommandContext(context.WithoutCancel(t.Context()), "sh", "-c", "kill -9 $(cat "+pid+")").Run()
			})
			if err := exec.CommandContext(t.Context(), "sh", "-c", script).Run(); err != nil {
				t.Fatal(err)
			}
			awaitAddress(t, addr)
			if c.restart == "" {
				c.restart = script
			}
			j := judge(t, "http://"+addr+"/t/op", "--slow", "300ms", "--only", "crashes", "--restart", c.restart)
			j.notMet(t, strings.Fields(c.breaks)...)
			j.notShown(t, strings.Fields(c.hides)...)
		})
	}
}

// crashingServices are services with and without a memory that outlives them.
var crashingServices = map[string]struct{ flags, restart, breaks, hides string }{
	"store on disk":      {flags: "-store sqlite -lease 2s"},
	"store in memory":    {flags: "-store memory -lease 2s", breaks: "crashes/kept"},
	"a lock that stays":  {flags: "-store sqlite -lease 1h", breaks: "crashes/decided"},
	"nothing is stopped": {flags: "-store sqlite -lease 2s", restart: "true", hides: "crashes/kept crashes/decided"},
}

// awaitAddress waits until something listens.
func awaitAddress(t *testing.T, addr string) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) { //nolint:forbidigo // polls a server
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", addr)
		if err == nil {
			_ = conn.Close()
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}
