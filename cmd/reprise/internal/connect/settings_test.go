package connect

import (
	"database/sql"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

func TestRedisURLs(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		url    string
		hosts  string // with their ports
		wrong  string // a part of the error
		kind   string
		secret string
	}{
		{url: "redis://localhost", hosts: "localhost:6379", kind: "single"},
		{url: "rediss://user:p%40ss@localhost:6380/3", hosts: "localhost:6380", kind: "single", secret: "p@ss"},
		{url: "redis+sentinel://:hidden-word@a:1,b:2,c/1?master=main", hosts: "a:1,b:2,c:26379", kind: "sentinel", secret: "hidden-word"},
		{url: "redis+cluster://a:1,b:2", hosts: "a:1,b:2", kind: "cluster"},
		{url: "redis://[::1]:6379/0", hosts: "[::1]:6379", kind: "single"},
		{url: "http://localhost", wrong: "is not redis"},
		{url: "redis+tls://localhost", wrong: "is not redis"},
		{url: "localhost:6379", wrong: "is not redis"},
		{url: "redis://", wrong: "no host"},
		{url: "redis://a,,b", wrong: "no host"},
		{url: "redis://user:hidden%zzword@a", wrong: "percent-encoded"},
		{url: "redis://a/0?x=%zz", wrong: "is not redis"},
	} {
		u, err := parseRedisURL(c.url)
		switch {
		case c.wrong != "" && (err == nil || !strings.Contains(err.Error(), c.wrong) || strings.Contains(err.Error(), "hidden")):
			t.Errorf("%s: error %v, want one with %q and without the password", c.url, err, c.wrong)
			continue
		case c.wrong != "":
			continue
		case err != nil:
			t.Errorf("%s: %v", c.url, err)
			continue
		}
		kind := map[[2]bool]string{{true, false}: "sentinel", {false, true}: "cluster", {}: "single"}[[2]bool{u.sentinel, u.cluster}]
		var hosts []string
		for _, host := range u.hosts {
			hosts = append(hosts, u.withPort(host))
		}
		if got := strings.Join(hosts, ","); got != c.hosts || kind != c.kind {
			t.Errorf("%s: hosts %s, kind %s; want %s, %s", c.url, got, kind, c.hosts, c.kind)
		}
		if c.secret != "" && !strings.Contains(strings.Join(u.secrets(), " "), c.secret) {
			t.Errorf("%s: the secrets %q lack %q", c.url, u.secrets(), c.secret)
		}
	}
}

func FuzzRedisURL(f *testing.F) {
	f.Add("redis+sentinel://u:p@a,b:1/0?master=m")
	f.Add("rediss+cluster://[::1]:1,b?%00")
	f.Add("redis:////:x")
	f.Fuzz(func(t *testing.T, text string) {
		u, err := parseRedisURL(text)
		if err == nil && len(u.hosts) == 0 {
			t.Errorf("%q has no host and no error", text)
		}
	})
}

// In a URL of sentinels, the user is that of the servers, as in every other URL.
func TestUsersOfSentinelsAndServers(t *testing.T) {
	t.Parallel()
	u, err := parseRedisURL("redis+sentinel://op:pw@s1:26379,s2/2?master=main&sentinel_username=watch&sentinel_password=swp")
	must(t, err)
	client, err := sentinelClient(&u, new(certificates))
	must(t, err)
	defer client.Close()
	o := client.(*redis.Client).Options()
	if o.Username != "op" || o.Password != "pw" || o.DB != 2 || !o.ContextTimeoutEnabled {
		t.Errorf("user %q, password %q, database %d", o.Username, o.Password, o.DB)
	}
}

func TestPasswordsAreRedacted(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"redis://op:open/sesame@h:1", "redis+cluster://op:open/sesame@h:1", "redis+cluster://op:open%20sesame@h1:70x1", "redis+sentinel://op:open?sesame@h:1/m"} {
		if _, err := Open(t.Context(), &Settings{URL: url, Prefix: "orders:"}); err == nil || strings.Contains(err.Error(), "open") || strings.Contains(err.Error(), "sesame") {
			t.Errorf("%s: %v", url, err)
		}
	}
	for _, s := range []Settings{
		{URL: "redis://op:open-sesame@127.0.0.1:1", Prefix: "orders:"},
		{URL: "postgres://op:open-sesame@127.0.0.1:1/db"},
		{URL: "mysql://op:open-sesame@127.0.0.1:1/db"},
	} {
		store, err := Open(t.Context(), &s)
		must(t, err)
		t.Cleanup(store.Close)
		if strings.Contains(store.Name+store.Endpoint, "sesame") {
			t.Errorf("the name %q has the password", store.Name)
		}
		if got := store.Redact("dial " + s.URL + ": open-sesame is wrong"); strings.Contains(got, "sesame") {
			t.Errorf("redacted: %q", got)
		}
	}
}

// The URL is the service's, and may ask for the pool of a service. Only the proxy is the
// service, with as many connections as its URL allows. It opens none before it is used.
func TestPostgresPoolIsSmallUnlessTheProgramIsTheService(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pool    string
		service bool
		want    int32
	}{
		{"?pool_max_conns=100&pool_min_conns=50&pool_min_idle_conns=50", false, 4},
		{"?pool_max_conns=1", false, 4},
		{"", true, max(4, int32(runtime.NumCPU()))},
		{"?pool_max_conns=100", true, 100},
		{"?pool_max_conns=100&pool_min_conns=50&pool_min_idle_conns=50", true, 100},
	} {
		st, err := openPostgres(t.Context(), &Settings{URL: "postgres://localhost/shop" + c.pool, ServicePool: c.service})
		must(t, err)
		t.Cleanup(st.Close)
		if got := st.pool.Config(); got.MaxConns != c.want || got.MinConns != 0 || got.MinIdleConns != 0 {
			t.Errorf("%+v: %d to %d connections, %d idle", c, got.MinConns, got.MaxConns, got.MinIdleConns)
		}
	}
}

// A report of a store from the background, such as a failed purge, reaches the log of
// a command that serves, and disturbs no other.
func TestStoresReportToTheLoggerOfACommandThatServes(t *testing.T) {
	t.Parallel()
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	for _, want := range []*slog.Logger{log, nil} {
		st, err := openPostgres(t.Context(), &Settings{URL: "postgres://localhost/shop", Logger: want})
		must(t, err)
		t.Cleanup(st.Close)
		if got := st.Config.Logger; got == nil || got.Enabled(t.Context(), slog.LevelError) != (want != nil) {
			t.Errorf("with the logger %v, the store has %v", want, got)
		}
	}
}

// must fails the test on an error.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// The file of a service has other writers, for which every command waits, unless the URL
// says how long.
func TestSQLiteWaitsForOtherWriters(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "records.db")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for query, want := range map[string]int{"": 5000, "_pragma=foreign_keys(1)": 5000, "_pragma=busy_timeout(70)": 70} {
		db, err := sql.Open("sqlite", sqliteName(file, query))
		if err != nil {
			t.Fatal(err)
		}
		var got int
		if err := db.QueryRowContext(t.Context(), "PRAGMA busy_timeout").Scan(&got); err != nil || got != want {
			t.Errorf("%q: waits %d ms, %v; want %d", query, got, err, want)
		}
		_ = db.Close()
	}
}
