package program

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	reprisehttp "github.com/reprise-go/reprise/adapters/nethttp"
	"github.com/reprise-go/reprise/conformance/adaptertest"
	"github.com/reprise-go/reprise/conformance/adaptertest/testapp"
	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/servers"
	repriseredis "github.com/reprise-go/reprise/store/redis"
)

// judgement is the report of reprise judge as JSON.
type judgement struct {
	Schema  int
	Version string
	Header  string `json:"key_header"`
	Ended   string
	Summary map[string]map[string]int // by the level
	Cases   []judgedCase
}

type judgedCase struct{ ID, Level, State, Source, Detail string }

// in returns the IDs of the cases in a state.
func (j *judgement) in(state string) []string {
	ids := []string{}
	for _, c := range j.Cases {
		if c.State == state {
			ids = append(ids, c.ID)
		}
	}
	return ids
}

// judge runs reprise judge. It fails t unless exactly these cases are not met, and if the
// exit code disagrees with the report.
func judge(t *testing.T, notMet string, args ...string) *judgement {
	t.Helper()
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(t.Context(), program(t), append([]string{"judge", "--json"}, args...)...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	_ = cmd.Run() // the exit code says more
	var j judgement
	if err := json.Unmarshal(out.Bytes(), &j); err != nil {
		t.Fatalf("exit code %d: %s%s", cmd.ProcessState.ExitCode(), out.Bytes(), errs.Bytes())
	}
	want := strings.Fields(notMet)
	slices.Sort(want)
	if got := slices.Sorted(slices.Values(j.in("not met"))); !slices.Equal(got, want) {
		t.Errorf("not met: %q, want %q", got, want)
	}
	code := 0
	if j.Ended != "" {
		code = 2
	}
	for _, c := range j.Cases {
		if c.State == "not met" {
			t.Logf("%s: %s", c.ID, c.Detail)
			if c.Level == "must" {
				code = 1
			}
		}
	}
	if got := cmd.ProcessState.ExitCode(); got != code {
		t.Errorf("exit code %d, want %d", got, code)
	}
	counted := map[string]map[string]int{}
	for _, level := range []string{"must", "should", "may"} {
		counted[level] = map[string]int{"met": 0, "not_met": 0, "not_shown": 0}
	}
	for _, c := range j.Cases {
		counted[c.Level][strings.ReplaceAll(c.State, " ", "_")]++
	}
	if !reflect.DeepEqual(j.Summary, counted) || j.Schema != 1 || j.Version == "" || j.Header != "Idempotency-Key" {
		t.Errorf("the report counts %v, want %v; schema %d, version %q, field %q", j.Summary, counted, j.Schema, j.Version, j.Header)
	}
	return &j
}

// judgedRetention is that of the services whose retention the tests judge.
const judgedRetention = 12 * time.Second

// keepsOpen is the one case that a server of net/http does not meet, with any
// handler: it reads a request with a length and a transfer coding by the coding, and
// keeps the connection open.
const keepsOpen = "framing/both"

// asked are the flags for a service that shows all but retention, crashes and other
// addresses. Short tests judge only the groups of the named cases, if there are any.
func asked(base, profile, cases string) []string {
	args := []string{
		base + "/t/op", "--slow", "400ms", "--executions", base + "/executions/op", "--other", base + "/t/other", "--profile", profile,
		"--scope", adaptertest.TenantHeader + ": one", "--scope", adaptertest.TenantHeader + ": two",
	}
	if testing.Short() && cases != "" {
		groups := strings.Fields(cases)
		for i := range groups {
			groups[i], _, _ = strings.Cut(groups[i], "/")
		}
		args = append(args, "--only", strings.Join(groups, ","))
	}
	return args
}

// judged returns two endpoints of the programmable application behind a guard.
func judged(st store.Store, c protocol.Config, outside, inside layer) (http.Handler, *protocol.Guard, error) {
	quiet := slog.New(slog.DiscardHandler)
	app, err := testapp.New(adaptertest.Options{Store: memstore.New()}, quiet)
	if err != nil {
		return nil, nil, err
	}
	c.Engine.Log = quiet
	guard, err := protocol.New(st, c)
	if err != nil {
		return nil, nil, err
	}
	other, err := guard.With(func(c *protocol.Config) { c.Endpoint = "other" })
	if err != nil {
		return nil, nil, err
	}
	protect := func(guard *protocol.Guard) http.Handler {
		handler := inside.around(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_ = app.Run(r.Context(), &testapp.NetHTTPCall{W: w, R: r}, "op")
		}))
		return outside.around(reprisehttp.Middleware(guard, func(r *http.Request) (string, error) {
			return testapp.TenantOf(r.Header.Values(adaptertest.TenantHeader))
		})(handler))
	}
	mux := http.NewServeMux()
	mux.Handle("/t/op", protect(guard))
	mux.Handle("/t/other", protect(other))
	mux.HandleFunc("GET /executions/op", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(app.Report("op")) })
	return mux, guard, nil
}

// judgedServer serves a judged service, with a change of the bytes that it reads.
func judgedServer(t *testing.T, st store.Store, c protocol.Config, d defect) string {
	t.Helper()
	handler, guard, err := judged(st, c, d.outside, d.inside)
	labtest.Must(t, err)
	server := httptest.NewUnstartedServer(handler)
	if d.wire != nil {
		server.Listener = changedListener{server.Listener, d.wire}
	}
	server.Start()
	t.Cleanup(func() {
		server.Close()
		labtest.Must(t, guard.Close(context.WithoutCancel(t.Context())))
	})
	return server.URL
}

// changedListener changes the bytes of its connections.
type changedListener struct {
	net.Listener

	change func([]byte) []byte
}

func (l changedListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	return &changedConn{conn, l.change}, err
}

type changedConn struct {
	net.Conn

	change func([]byte) []byte
}

func (c *changedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	return copy(p, c.change(p[:n])), err
}

// A broken service is a correct one with one defect, and the judge names the rule that it
// breaks.
func TestJudgeNamesTheDefectOfABrokenService(t *testing.T) {
	t.Parallel()
	for name, d := range defects {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			profile := cmp.Or(d.profile, "reprise")
			c := profilePolicies[profile].policy
			if d.config != nil {
				d.config(&c)
			}
			args := asked(judgedServer(t, memstore.New(), c, d), profile, d.breaks)
			if strings.Contains(d.breaks, "retention/") || d.breaks == "" {
				args = append(args, "--retention", judgedRetention.String())
			}
			breaks := d.breaks
			if (!slices.Contains(args, "--only") || strings.Contains(breaks, "framing/")) && !strings.Contains(breaks, keepsOpen) {
				breaks += " " + keepsOpen
			}
			judge(t, breaks, args...)
		})
	}
}

// A policy of Reprise meets each profile, and the default one breaks the rules of others
// where they differ.
func TestJudgeTellsProfilesApart(t *testing.T) {
	t.Parallel()
	for profile, c := range profilePolicies {
		t.Run(profile, func(t *testing.T) {
			t.Parallel()
			body := []string{"--body", `{"judge":"a","n":1,"list":[1,2]}`}
			judge(t, keepsOpen, append(body, asked(judgedServer(t, memstore.New(), c.policy, defect{}), profile, "")...)...)
			judge(t, c.unlike, append(body, asked(judgedServer(t, memstore.New(), protocol.Config{}, defect{}), profile, c.unlike)...)...)
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

// What the flags offer decides which cases are shown.
func TestJudgeShowsWhatItCan(t *testing.T) {
	t.Parallel()
	base := judgedServer(t, memstore.New(), protocol.Config{Retention: judgedRetention}, defect{})
	j := judge(t, keepsOpen, append(asked(base, "reprise", ""), "--retention", judgedRetention.String())...)
	if got, want := j.in("not shown"), strings.Fields("presence/missing presence/link concurrency/addresses crashes/kept crashes/decided"); !slices.Equal(got, want) {
		t.Errorf("not shown: %q, want %q", got, want)
	}
	j = judge(t, "", append(asked(judgedServer(t, memstore.New(), protocol.Config{Required: true}, defect{}), "reprise", ""), "--only", "presence,key,binding")...)
	if got, want := j.in("not shown"), []string{"key/trailer", "presence/optional"}; !slices.Equal(got, want) {
		t.Errorf("not shown: %q, want %q", got, want)
	}
	var seen atomic.Int64
	limited := func(w http.ResponseWriter, r request, next http.Handler) {
		if seen.Add(1) > 40 {
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		next.ServeHTTP(w, r)
	}
	if j := judge(t, "", judgedServer(t, memstore.New(), protocol.Config{}, defect{outside: limited})+"/t/op"); j.Ended != "the service limits the rate of requests" {
		t.Errorf("ended: %q", j.Ended)
	}
}

func TestJudgeSeesSeveralAddressesOfAService(t *testing.T) {
	t.Parallel()
	st := servedBy["redis"](t).store
	one, two := judgedServer(t, st, protocol.Config{}, defect{}), judgedServer(t, st, protocol.Config{}, defect{})
	if j := judge(t, "", one+"/t/op", two+"/t/op", "--only", severalAddresses); len(j.in("met")) != 1 {
		t.Errorf("%+v", j)
	}
	judge(t, severalAddresses, one+"/t/op", judgedServer(t, memstore.New(), protocol.Config{}, defect{})+"/t/op", "--only", severalAddresses)
}

// severalAddresses is the case that one server cannot show.
const severalAddresses = "concurrency/addresses"

// The environment of these tests as a judged service: its store, its address, and the
// lease of its guard.
const judgedStore, judgedAddr, judgedLease = "REPRISE_JUDGED_STORE", "REPRISE_JUDGED_ADDR", "REPRISE_JUDGED_LEASE"

// serveJudged is a judged service until it is killed.
func serveJudged() {
	var st store.Store = memstore.New()
	server, prefix, shared := strings.Cut(os.Getenv(judgedStore), " ")
	lease, err := time.ParseDuration(os.Getenv(judgedLease))
	if shared && err == nil {
		st, err = repriseredis.New(redis.NewClient(&redis.Options{Addr: server, ContextTimeoutEnabled: true}), repriseredis.Config{Prefix: prefix})
	}
	handler, _, problem := judged(st, protocol.Config{Engine: reprise.Config{Lease: lease}}, nil, nil)
	if err = cmp.Or(err, problem); err == nil {
		err = http.ListenAndServe(os.Getenv(judgedAddr), handler)
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// restartable starts a judged service in a process of its own, and returns the URL of its
// endpoint and the command that kills it and starts it again.
func restartable(t *testing.T, records, lease string) (url, restart string) {
	t.Helper()
	pid, addr := filepath.Join(t.TempDir(), "pid"), servers.FreeAddr(t)
	restart = fmt.Sprintf(`if kill -9 $(cat %[1]s); then for i in $(seq 100); do kill -0 $(cat %[1]s) || break; sleep 0.05; done; fi 2>/dev/null
%[2]s='%[3]s' %[4]s=%[5]s %[6]s=%[7]s %[8]s & echo $! >%[1]s`, pid, judgedStore, records, judgedAddr, addr, judgedLease, lease, os.Args[0])
	t.Cleanup(func() {
		_ = exec.CommandContext(context.WithoutCancel(t.Context()), "sh", "-c", "kill -9 $(cat "+pid+")").Run()
	})
	labtest.Must(t, exec.CommandContext(t.Context(), "sh", "-c", restart).Run()) //nolint:gosec // a script of this test
	labtest.Eventually(t, "the service", func() bool { return listens(addr) })
	return "http://" + addr + "/t/op", restart
}

// The service is killed and started again while requests run.
func TestJudgeSeesCrashes(t *testing.T) {
	t.Parallel()
	shared := servers.Redis.Shared(t).Addr() + " "
	for name, c := range crashingServices {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			records := "memory"
			if c.shared {
				records = shared + labtest.RedisPrefix()
			}
			endpoint, script := restartable(t, records, c.lease)
			j := judge(t, c.breaks, endpoint, "--slow", "300ms", "--only", "crashes", "--restart", cmp.Or(c.restart, script))
			if got := strings.Join(j.in("not shown"), " "); got != c.hides {
				t.Errorf("not shown: %q, want %q", got, c.hides)
			}
		})
	}
}

// An operation that ran twice, and an answer that belongs to another request, fail the
// judgement in every profile, also where its document has only a should.
func TestJudgeFailsForHarmInEveryProfile(t *testing.T) {
	t.Parallel()
	leaks := defect{outside: requests(func(r request) { r.Header.Set(adaptertest.TenantHeader, "all") })}
	for _, profile := range []string{"draft-07", "reprise", "stripe", "acp"} {
		t.Run(profile, func(t *testing.T) {
			t.Parallel()
			for code, d := range []defect{{}, leaks} {
				base := judgedServer(t, memstore.New(), profilePolicies[profile].policy, d)
				runProgram(t, nil, code, "judge", base+"/t/op", "--only", "scopes/independent", "--profile", profile,
					"--scope", adaptertest.TenantHeader+": one", "--scope", adaptertest.TenantHeader+": two")
			}
			endpoint, restart := restartable(t, "memory", "2s")
			runProgram(t, nil, 1, "judge", endpoint, "--only", "crashes/kept", "--profile", profile, "--restart", restart)
		})
	}
}

// crashingServices are services with and without a memory that outlives them.
var crashingServices = map[string]struct {
	shared                        bool
	lease, restart, breaks, hides string
}{
	"a store outside":    {shared: true, lease: "2s"},
	"a store in memory":  {lease: "2s", breaks: "crashes/kept"},
	"a lock that stays":  {shared: true, lease: "1h", breaks: "crashes/decided"},
	"nothing is stopped": {shared: true, lease: "2s", restart: "true", hides: "crashes/kept crashes/decided"},
}

// A case that no test has seen fail may be one that cannot. A profile of a foreign
// document demands its rules only.
func TestEveryCaseOfTheJudgeFailsForADefect(t *testing.T) {
	t.Parallel()
	want, all := []string{severalAddresses}, []string{}
	for _, d := range defects {
		want = append(want, strings.Fields(d.breaks)...)
	}
	for _, c := range profilePolicies {
		want = append(want, strings.Fields(c.unlike)...)
	}
	for _, c := range crashingServices {
		want = append(want, strings.Fields(c.breaks)...)
	}
	for profile, document := range map[string]string{"reprise": "", "draft-07": "draft ", "stripe": "Stripe, ", "acp": "ACP "} {
		var list []judgedCase
		labtest.Must(t, json.Unmarshal([]byte(runProgram(t, nil, 0, "judge", "--list", "--json", "--profile", profile)), &list))
		for _, c := range list {
			all = append(all, c.ID)
			if c.Level == "must" && !strings.Contains(c.Source, document) {
				t.Errorf("%s: %s is a must by %s", profile, c.ID, c.Source)
			}
		}
	}
	slices.Sort(want)
	slices.Sort(all)
	if want, all := slices.Compact(want), slices.Compact(all); !slices.Equal(want, all) {
		t.Errorf("the defects break\n%q\nand the cases are\n%q", want, all)
	}
}
