package redis

import (
	"errors"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/servers"
	repriseredis "github.com/reprise-go/reprise/store/redis"
)

// redisACL returns the rules that docs/operate/redis.md recommends, without the password,
// and its optional rules, by purpose.
func redisACL(tb testing.TB) (rules []string, extra map[string][]string) {
	tb.Helper()
	page, err := os.ReadFile("../../docs/operate/redis.md")
	labtest.Want(tb, "read the documentation", err, nil)
	_, section, _ := strings.Cut(string(page), "## Permissions")
	section, _, _ = strings.Cut(section, "\n## ")
	line := regexp.MustCompile(`ACL SETUSER \S+ (.*)`).FindStringSubmatch(section)
	if line == nil {
		tb.Fatal("docs/operate/redis.md has no ACL SETUSER line")
	}
	for rule := range strings.FieldsSeq(line[1]) {
		if !strings.HasPrefix(rule, ">") {
			rules = append(rules, rule)
		}
	}
	extra = make(map[string][]string)
	for _, row := range regexp.MustCompile("(?m)^\\| `(.*?)` \\| (.*?) \\|$").FindAllStringSubmatch(section, -1) {
		extra[row[2]] = strings.Fields(row[1])
	}
	if len(extra) < 4 {
		tb.Fatalf("docs/operate/redis.md has these additions only: %v", extra)
	}
	return rules, extra
}

// redisUser creates a user of the server with rules, and returns a client that logs in as
// it.
func redisUser(tb testing.TB, server *servers.RedisServer, name string, rules ...string) *redis.Client {
	tb.Helper()
	redisDo(tb, server, append([]string{"ACL", "SETUSER", name, "on", ">pw"}, rules...)...)
	client := redis.NewClient(redisOnePool(&redis.Options{Addr: server.Addr(), Username: name, Password: "pw", ContextTimeoutEnabled: true}))
	tb.Cleanup(func() { _ = client.Close() })
	return client
}

// The documented user can do everything that the store needs, and touch no other keys.
func TestRedisTheDocumentedPermissionsSuffice(t *testing.T) {
	t.Parallel()
	forEachFlavor(t, func(t *testing.T, flavor *servers.Flavor) {
		pair := flavor.StartReplicated(t, 1)
		server := pair.Primary
		rules, extra := redisACL(t)
		all := rules
		for _, more := range extra {
			for _, rule := range more {
				if rule != "+waitaof" || server.Version().AtLeast(7, 2) {
					all = append(all, rule)
				}
			}
		}
		for _, user := range []struct {
			name     string
			rules    []string
			config   repriseredis.Config
			findings string
		}{
			{"bare", rules, repriseredis.Config{}, ""},
			{"full", all, repriseredis.Config{Durability: repriseredis.Acked(1)}, "persistence"},
			{"without-channels", append(slices.Clip(all), "resetchannels"), repriseredis.Config{}, "persistence channels"},
		} {
			t.Run(user.name, func(t *testing.T) {
				t.Parallel()
				client := redisUser(t, server, user.name, user.rules...)
				st := labtest.RedisStore(t, client, user.config)
				if user.name != "bare" {
					var err error
					user.config.Prefix = labtest.ServicePrefix
					st, err = repriseredis.Open(t.Context(), client, user.config)
					labtest.Want(t, "open", err, nil)
					t.Cleanup(func() { _ = st.Close() })
					labtest.Eventually(t, "the findings are "+user.findings, func() bool { // a busy machine may subscribe late
						findings, err := st.Check(t.Context())
						labtest.Want(t, "check", err, nil)
						var codes []string
						for _, f := range findings {
							codes = append(codes, f.Code)
						}
						return strings.Join(codes, " ") == user.findings
					})
					_, err = st.List(t.Context(), store.Query{Limit: 10})
					labtest.Want(t, "list", err, nil)
				}
				redisRunOnce(t, st)
				r := labtest.Claimed(t, st)
				labtest.Want(t, "release", st.Release(t.Context(), r.ID, r.Owner), nil)
				if strings.Contains(user.findings, "channels") {
					_, _, err := st.Watch(t.Context(), r.ID)
					labtest.Want(t, "watch", err, store.ErrUnavailable)
				} else {
					redisWatch(t, st, r)
				}
				for _, forbidden := range [][]any{
					{"client", "kill", "type", "normal"},
					{"client", "pause", "1000"},
					{"client", "list"},
					{"config", "set", "maxmemory", "1mb"},
					{"flushall"},
					{"keys", "*"},
					{"acl", "whoami"},
					{"shutdown"},
					{"get", "another:key"},
					{"publish", "reprise:x", ""},
				} {
					if err := client.Do(t.Context(), forbidden...).Err(); err == nil || !strings.HasPrefix(err.Error(), "NOPERM") {
						t.Errorf("%v: %v, want NOPERM", forbidden, err)
					}
				}
			})
		}
	})
}

// A permission or a password that is lost while a handler runs, and restored before the
// lease is lost, has no effect: a completion is refused as misconfigured, which an engine
// repeats, and then succeeds.
func TestRedisCompletesAfterARepairWithinTheLease(t *testing.T) {
	t.Parallel()
	forEachFlavor(t, func(t *testing.T, flavor *servers.Flavor) {
		rules, _ := redisACL(t)
		for _, c := range []struct {
			name       string
			takes, way []string // rules that break and mend
		}{
			{"rotated password", []string{"resetpass", ">other"}, []string{">pw"}},
			{"disabled user", []string{"off"}, []string{"on"}},
			{"revoked commands", []string{"-evalsha", "-eval", "-set"}, []string{"+evalsha", "+eval", "+set"}},
			{"revoked command within the scripts", []string{"-set"}, []string{"+set"}},
			{"revoked keys", []string{"resetkeys"}, []string{"~orders:*"}},
		} {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				server := flavor.Start(t)
				st := labtest.RedisStore(t, redisUser(t, server, "app", rules...), repriseredis.Config{})
				r := labtest.Claimed(t, st)
				redisDo(t, server, append([]string{"ACL", "SETUSER", "app"}, c.takes...)...)
				redisDo(t, server, "CLIENT", "KILL", "USER", "app")
				labtest.Eventually(t, "a completion is refused as misconfigured", func() bool {
					err := redisComplete(t, st, r, "answer")
					if err == nil {
						t.Fatal("completed meanwhile")
					}
					return errors.Is(err, store.ErrMisconfigured)
				})
				redisDo(t, server, append([]string{"ACL", "SETUSER", "app"}, c.way...)...)
				labtest.Eventually(t, "it is completed", func() bool { return redisComplete(t, st, r, "answer") == nil })
				labtest.WantClaim(t, st, labtest.Rival(r), store.Completed)
			})
		}
	})
}

func TestRedisTheDocumentedPermissionsSufficeInACluster(t *testing.T) {
	t.Parallel()
	forEachFlavor(t, func(t *testing.T, flavor *servers.Flavor) {
		cluster := flavor.StartCluster(t)
		rules, extra := redisACL(t)
		rules = append(append(append(rules, extra["a cluster"]...), extra["`Check` and `Open`"]...), extra["`Acked`"]...)
		for _, node := range cluster.Nodes {
			redisDo(t, node, append([]string{"ACL", "SETUSER", "app", "on", ">pw"}, rules...)...)
		}
		client := labtest.RedisCluster(t, &redis.ClusterOptions{Addrs: cluster.Addrs(), Username: "app", Password: "pw"})
		var st *repriseredis.Store
		labtest.Eventually(t, "the replicas confirm", func() (ok bool) {
			var err error
			st, err = repriseredis.Open(t.Context(), client, repriseredis.Config{Prefix: labtest.ServicePrefix, Durability: repriseredis.Acked(1)})
			if err != nil && !errors.Is(err, store.ErrNotReplicated) {
				t.Fatalf("open: %v", err)
			}
			return err == nil
		})
		t.Cleanup(func() { _ = st.Close() })
		for range 20 {
			redisRunOnce(t, st)
		}
		redisLosesWatches(t, st, cluster.Nodes...)
	})
}
