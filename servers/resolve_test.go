package servers_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/reprise-go/reprise/servers"
)

// The tests of this file run this program again, in a role, because they need another
// environment or die.
const roleEnv = "REPRISE_TEST_SERVERS_ROLE"

// play runs the program in a role.
func play(role string, m *testing.M) int {
	if role == "victim" {
		return m.Run() // and is killed before it gets to stop anything
	}
	return servers.Main{M: m}.Run()
}

// again returns this program, to run one of its tests in a role with an environment.
func again(t *testing.T, role, test string, env ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, "-test.run=^"+test+"$", "-test.v")
	cmd.Env = append(os.Environ(), roleEnv+"="+role)
	cmd.Env = append(cmd.Env, env...)
	return cmd
}

// roleOnly skips a test that means something only in a role.
func roleOnly(t *testing.T, role string) {
	t.Helper()
	if os.Getenv(roleEnv) != role {
		t.Skip("runs in the role " + role + " only")
	}
}

func TestResolveInRole(t *testing.T) {
	roleOnly(t, "resolver")
	t.Log("resolved " + startWanted(t))
}

const wantEnv = "REPRISE_TEST_SERVERS_WANT"

// startWanted starts, or finds, the server that the environment of a role names, and
// returns its URL.
func startWanted(t *testing.T) (url string) {
	t.Helper()
	switch want := os.Getenv(wantEnv); want {
	case "redis":
		return servers.Redis.Start(t).URL()
	case "shared redis":
		return servers.Redis.Shared(t).URL()
	case "valkey":
		return servers.Valkey.Start(t).URL()
	case "shared valkey":
		return servers.Valkey.Shared(t).URL()
	case "shared postgres":
		return servers.SharedPostgres(t).URL()
	case "postgres set":
		return servers.StartPostgres(t).StartStandby(t).StartPgBouncer(t).URL()
	default:
		t.Fatalf("unknown server %q", want)
		return ""
	}
}

func TestMissingServerSkipsUnlessRequired(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		want    string
		env     []string
		output  []string // all of these
		failure bool
	}{
		{"skips and names the package", "redis", nil, []string{"--- SKIP", "redis-server", "REPRISE_TEST_REDIS_URL"}, false},
		{"shared skips", "shared redis", nil, []string{"--- SKIP", "redis-server"}, false},
		{"required fails", "redis", []string{"REPRISE_TEST_REQUIRE=postgres, redis"}, []string{"--- FAIL", "redis-server", "requires it"}, true},
		{"shared required fails", "shared valkey", []string{"REPRISE_TEST_REQUIRE=valkey"}, []string{"--- FAIL", "valkey-server"}, true},
		{"another one required skips", "redis", []string{"REPRISE_TEST_REQUIRE=postgres"}, []string{"--- SKIP"}, false},
		{"the name of a framework is known", "redis", []string{"REPRISE_TEST_REQUIRE=fiber,echo5"}, []string{"--- SKIP"}, false},
		{"a misspelt name fails", "redis", []string{"REPRISE_TEST_REQUIRE=rediss"}, []string{"--- FAIL", `"rediss"`}, true},
		{"a URL that does not answer fails", "shared redis", []string{"REPRISE_TEST_REDIS_URL=redis://:secret@127.0.0.1:1"}, []string{"--- FAIL", "REPRISE_TEST_REDIS_URL"}, true},
		{"a malformed URL fails", "shared redis", []string{"REPRISE_TEST_REDIS_URL=:secret@localhost"}, []string{"--- FAIL", "REPRISE_TEST_REDIS_URL"}, true},
		{"a URL of another server fails", "shared postgres", []string{"REPRISE_TEST_POSTGRES_URL=redis://:secret@localhost"}, []string{"--- FAIL", "REPRISE_TEST_POSTGRES_URL"}, true},
		{"a URL is not one to kill", "redis", []string{"REPRISE_TEST_REDIS_URL=redis://localhost"}, []string{"--- SKIP", "redis-server"}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			env := append([]string{
				"PATH=", "REPRISE_TEST_REQUIRE=", "REPRISE_TEST_REDIS_URL=", "REPRISE_TEST_VALKEY_URL=", "REPRISE_TEST_POSTGRES_URL=",
				wantEnv + "=" + tt.want,
			}, tt.env...)
			out, err := again(t, "resolver", "TestResolveInRole", env...).CombinedOutput()
			if (err != nil) != tt.failure {
				t.Errorf("ended with %v", err)
			}
			for _, s := range tt.output {
				if !strings.Contains(string(out), s) {
					t.Errorf("no %q in the output", s)
				}
			}
			if strings.Contains(string(out), "secret") {
				t.Error("the output shows the password of the URL")
			}
			if t.Failed() {
				t.Logf("output:\n%s", out)
			}
		})
	}
}

func TestSharedUsesTheServerOfTheEnvironment(t *testing.T) {
	t.Parallel()
	s := servers.Redis.Start(t, "requirepass=secret")
	if want := "redis://:secret@" + s.Addr(); s.URL() != want {
		t.Errorf("URL %s, want %s", s.URL(), want)
	}
	cmd := again(t, "resolver", "TestResolveInRole", "PATH=", "REPRISE_TEST_REDIS_URL="+s.URL(), wantEnv+"=shared redis")
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "resolved "+s.URL()) {
		t.Errorf("ended with %v:\n%s", err, out)
	}
}
