package program

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/servers"
)

// TestAlone runs the commands that need no server.
func TestAlone(t *testing.T) {
	t.Parallel()
	run(t, nil, nil, testscript.Params{Dir: "testdata/alone"})
}

// TestRedisServer runs the scripts that change the settings of a Redis server.
func TestRedisServer(t *testing.T) {
	t.Parallel()
	server := servers.Redis.Start(t, "maxmemory=64mb", "appendonly=yes")
	f := redisFixture(t, labtest.RedisClient(t, server.Addr()), "redis://"+server.Addr())
	f.env = append(f.env, "ADDR="+server.Addr())
	f.do = func(ctx context.Context, statement string) error {
		_, err := server.Do(ctx, strings.Fields(statement)...)
		return err
	}
	run(t, f, nil, testscript.Params{Dir: "testdata/redis"})
}

// TestPostgresServer runs the scripts that create roles and schemas.
func TestPostgresServer(t *testing.T) {
	t.Parallel()
	server := servers.StartPostgres(t, "fsync=on")
	var b [6]byte
	_, _ = rand.Read(b[:]) // never fails: it ends the program instead
	schema := "T_" + hex.EncodeToString(b[:])
	role, err := url.Parse(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	role.User = url.User("order service")
	role.RawQuery = ""
	f := &fixture{
		env: []string{"REPRISE_POSTGRES_URL=" + server.URL(), "REPRISE_SCHEMA=" + schema, "ROLE_URL=" + role.String()},
		do: func(ctx context.Context, statement string) error {
			_, err := server.Exec(ctx, statement)
			return err
		},
	}
	f.expire = func(ctx context.Context, n int) error {
		return f.do(ctx, `INSERT INTO "`+schema+`".reprise_records
			(id, version, state, attempt, fence, owner, fingerprint, lease_until, valid_until, expires_at, created_at)
			SELECT sha256(i::text::bytea), 1, 1, 1, i, decode(repeat('01', 16), 'hex'), sha256('x'), now() - interval '1 hour', now() - interval '1 hour',
				now() - interval '1 hour', now() - interval '2 hours' FROM generate_series(1, `+strconv.Itoa(n)+`) AS i`)
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
