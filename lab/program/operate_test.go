package program

import (
	"context"
	"crypto/rand"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/servers"
)

// TestAlone runs the commands that need no server.
func TestAlone(t *testing.T) {
	t.Parallel()
	run(t, nil, nil, testscript.Params{Dir: "testdata/alone"})
}

// TestRecords runs the scripts about records, each store on separate ones.
func TestRecords(t *testing.T) {
	t.Parallel()
	for dir, kinds := range map[string]map[string]func(testing.TB) *fixture{"testdata/records": servedBy, "testdata/reached": reachedBy} {
		for name, setup := range kinds {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				f := setup(t)
				run(t, f, f.seed(t), testscript.Params{Dir: dir})
			})
		}
	}
}

// TestRedisServer runs the scripts that change the settings of a Redis server.
func TestRedisServer(t *testing.T) {
	t.Parallel()
	server := servers.Redis.Start(t, "maxmemory=64mb", "appendonly=yes")
	f := redisFixture(t, labtest.RedisClient(t, server.Addr()), "redis://"+server.Addr())
	f.env = append(f.env, "ADDR="+server.Addr())
	f.do = func(ctx context.Context, statement string) error {
		words := strings.Fields(statement)
		if strings.HasPrefix(statement, "CONFIG SET ") {
			words = strings.SplitN(statement, " ", 4)
		}
		_, err := server.Do(ctx, words...)
		return err
	}
	run(t, f, nil, testscript.Params{Dir: "testdata/redis"})
}

// TestDoctorFindsCertificates: one that has ended, and one that ends soon, be it that of
// the server or that of the authority above it.
func TestDoctorFindsCertificates(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name+".pem") }
	const long = 60 * 24 * time.Hour
	certify(t, long, "root", file("root"), file("root-key"))
	certify(t, -time.Minute, "old", file("old"), file("old-key")) // which the server sends, although no client needs it
	old, err := os.ReadFile(file("old"))
	labtest.Must(t, err)
	for _, c := range []struct {
		authority, server time.Duration
		exit              int
		want              string
	}{
		{long, -time.Minute, 3, "✗ certificate: no connection, because the certificate of the server is not valid for this client: x509: certificate has expired"},
		{-time.Minute, long, 3, "✗ certificate: no connection, because the certificate of the server is not valid for this client: x509: certificate has expired"},
		{long, time.Hour, 1, "! certificate: the certificate of CN=cache ends on "},
		{time.Hour, long, 1, "! certificate: the certificate of CN=authority ends on "},
		{long, long, 0, "fine"},
	} {
		certify(t, c.authority, "authority", file("authority"), file("authority-key"), file("root"), file("root-key"))
		certify(t, c.server, "cache", file("cache"), file("cache-key"), file("authority"), file("authority-key"))
		sent, err := os.ReadFile(file("cache"))
		labtest.Must(t, err)
		labtest.Must(t, os.WriteFile(file("cache"), append(sent, old...), 0o600))
		addr := servers.FreeAddr(t)
		_, port, err := net.SplitHostPort(addr)
		labtest.Must(t, err)
		servers.Redis.Start(t, "appendonly=yes", "tls-port="+port, "tls-cert-file="+file("cache"), "tls-key-file="+file("cache-key"), "tls-auth-clients=no")
		out := runProgram(t, []string{"SSL_CERT_FILE=" + file("root"), "REPRISE_STORE=rediss://" + addr, "REPRISE_PREFIX=t:"}, c.exit, "doctor")
		if !strings.Contains(out, c.want) || (c.exit != 0) != strings.Contains(out, "    openssl s_client -connect "+addr+" -servername 127.0.0.1 </dev/null | grep ") {
			t.Error(out)
		}
	}
}

// TestPostgresServer runs the scripts that create roles and schemas.
func TestPostgresServer(t *testing.T) {
	t.Parallel()
	server := servers.StartPostgres(t, "fsync=on")
	schema := "T_" + strings.ToLower(rand.Text())
	role, err := url.Parse(server.URL())
	labtest.Must(t, err)
	role.User, role.RawQuery = url.User("order service"), ""
	f := &fixture{
		env: []string{"REPRISE_STORE=" + server.URL(), "REPRISE_SCHEMA=" + schema, "ROLE_URL=" + role.String()},
		do: func(ctx context.Context, statement string) error {
			_, err := server.Exec(ctx, statement)
			return err
		},
	}
	f.expire = func(ctx context.Context, n int) error {
		return f.do(ctx, `INSERT INTO "`+schema+`".reprise_records
			(id, version, state, attempt, fence, revision, owner, fingerprint, claimed_at, lease_until, replay_until, valid_until, due_at,
				retention, horizon, at_most_once, label, description, reason)
			SELECT sha256(i::text::bytea), 1, 1, 1, i, 1, decode(repeat('01', 16), 'hex'), sha256('x'), 1, 1, 0, 1, 1, 1000000, 0, 0, '', '', '' FROM generate_series(1, `+strconv.Itoa(n)+`) AS i`)
	}
	run(t, f, nil, testscript.Params{Dir: "testdata/postgres"})
}

// paste gives the server the lines that the program's last output says to paste, those
// that begin with a text.
func (f *fixture) paste(ts *testscript.TestScript, args []string) {
	pasted := 0
	for line := range strings.Lines(ts.ReadFile("stdout")) {
		if statement, ok := strings.CutPrefix(line, "    "); ok && strings.HasPrefix(statement, args[0]) {
			ts.Check(f.do(context.Background(), strings.TrimSpace(statement)))
			pasted++
		}
	}
	if pasted == 0 {
		ts.Fatalf("there is nothing to paste that begins with %q", args[0])
	}
}
