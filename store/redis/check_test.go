package repriseredis

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/redis/internal/record"
)

// sound is the INFO of a server that gives every guarantee.
const sound = "redis_version:7.2.4\nredis_mode:standalone\nrole:master\nconnected_slaves:2\nmaxmemory:0\nmaxmemory_policy:noeviction\n" +
	"aof_enabled:1\naof_last_write_status:ok\nrdb_last_bgsave_status:ok\ntcp_port:6379\n"

// soundServer returns an answer function of a fake that says info after sound, and does
// the work of scripts and channels. Lines of info may also be settings, and "refuses:"
// with a command. An answer of override that is not empty comes first.
func soundServer(info string, override func(command []string) string) func(conn, call int, command []string) string {
	held, completed := false, false
	settings := serverInfo{"appendfsync": "always", "maxmemory-policy": "noeviction", "save": ""}
	settings.parse(info)
	return func(_, _ int, command []string) string {
		if override != nil {
			if answer := override(command); answer != "" {
				return answer
			}
		}
		switch strings.ToLower(command[0]) {
		case settings["refuses"]:
			return "-NOPERM this user has no permissions to run this command\r\n"
		case "info":
			return bulk(sound + info)
		case "config":
			var answer strings.Builder
			for name, value := range settings {
				answer.WriteString(bulk(name) + bulk(value))
			}
			return fmt.Sprintf("*%d\r\n", 2*len(settings)) + answer.String()
		case "cluster":
			return bulk("cluster_state:ok")
		case "spublish", "ping":
			return ":0\r\n"
		case "ssubscribe":
			return "*3\r\n" + bulk("ssubscribe") + bulk(command[1]) + ":1\r\n"
		case "wait":
			return ":2\r\n"
		case "waitaof":
			return "*2\r\n:1\r\n:2\r\n"
		}
		if strings.EqualFold(command[0], "set") {
			switch {
			case completed:
				return bulk(string(replayable("probe")))
			case held:
				return bulk(string(recordOfClaim(store.Fingerprint{})))
			}
			held = true
			return claimed
		}
		switch command[1] {
		case record.ClaimScript.Digest:
			switch {
			case command[4][64]&record.FlagWaiting == 0:
				return claimed
			case completed:
				return bulk("Cprobe")
			default:
				return bulk("P\x00\x00\x00\x00\x00\x0f\x42\x40")
			}
		case record.CompleteScript.Digest:
			completed = true
			return bulk("D")
		case record.InspectScript.Digest:
			return inspected
		case record.ResolveScript.Digest, record.ReleaseScript.Digest:
			held = false
			return bulk("W")
		default:
			return bulk("W")
		}
	}
}

func TestCheckFindsBrokenGuarantees(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		level Durability
		info  string // lines that replace those of sound
		want  string // codes and grades; or one, and a part of its text
	}{
		{"sound", Acked(2), "", ""},
		{"sound on disk", Fsynced(1), "", ""},
		{"evicts the oldest", Async(), "maxmemory:100\nmaxmemory_policy:allkeys-lru", "eviction-policy unsafe"},
		{"evicts what expires first", Async(), "maxmemory:100\nmaxmemory_policy:volatile-ttl", "eviction-policy unsafe"},
		{"would evict", Async(), "maxmemory_policy:allkeys-lru", "eviction-policy warning"},
		{"bounded and evicts nothing", Async(), "maxmemory:100\nused_memory:79", ""},
		{"nearly full", Async(), "maxmemory:100\nused_memory:86", "memory warning"},
		{"nearly full but for buffers", Async(), "maxmemory:100\nused_memory:86\nmem_not_counted_for_evict:8", ""},
		{"full", Async(), "maxmemory:100\nused_memory:101", "memory unsafe"},
		{"full, and evicts", Async(), "maxmemory:100\nused_memory:101\nmaxmemory_policy:allkeys-lru", "eviction-policy unsafe, memory warning"},
		{"unbounded, of a size that is not told", Async(), "used_memory:1\nused_memory_rss:86", ""},
		{"unbounded on a full machine", Async(), "used_memory:1\nused_memory_rss:86\ntotal_system_memory:100", "memory warning"},
		{"too old", Async(), "redis_version:6.2.14", "server-version unsafe"},
		{"too old for WAITAOF", Fsynced(0), "redis_version:7.0.15", "server-version unsafe"},
		{"new", Fsynced(0), "redis_version:8.0.1", ""},
		{"a replica", Async(), "role:slave", "replica unsafe"},
		{"too few replicas", Acked(3), "", "replicas unsafe"},
		{"a cluster without its client", Async(), "redis_mode:cluster", "cluster-client unsafe"},
		{"a cluster of Valkey", Async(), "redis_mode:\nserver_mode:cluster", "cluster-client unsafe"},
		{"takes writes in each region", Async(), "crdt_config_version:1", "active-active unsafe"},
		{"no file for WAITAOF", Fsynced(0), "aof_enabled:0", "persistence unsafe"},
		{"the file cannot be written", Async(), "aof_last_write_status:err", "persistence warning"},
		{"the snapshot cannot be written", Async(), "aof_enabled:0\nrdb_last_bgsave_status:err", "persistence warning"},
		{"nothing on disk", Async(), "aof_enabled:0\nappendfsync:no", "persistence warning: neither appendonly nor snapshots"},
		{"snapshots only", Acked(1), "aof_enabled:0\nsave:3600 1", "persistence warning: only snapshots are on"},
		{"snapshots too", Async(), "save:3600 1", ""},
		{"a slow sync", Fsynced(0), "appendfsync:everysec", "appendfsync warning: a write waits for a second or two"},
		{"a sync a second", Async(), "appendfsync:everysec", ""},
		{"no sync", Async(), "appendfsync:no", "appendfsync warning: run again"},
		{"the snapshot beside the file cannot be written", Async(), "rdb_last_bgsave_status:err", ""},
		{"does not tell its policy here", Async(), "maxmemory_policy:", ""},
		{"does not tell its policy", Async(), "maxmemory:100\nmaxmemory_policy:\nmaxmemory-policy:", "eviction-policy warning"},
		{"is managed", Async(), "aof_enabled:0\nrefuses:config", ""}, // what it does not show is no finding
		{"is managed, and tells no policy", Async(), "maxmemory:100\nmaxmemory_policy:\nrefuses:config", "eviction-policy warning"},
		{"publishes nothing", Async(), "refuses:spublish", "channels warning: requests that wait for another one poll"},
		{"has no subscribers", Async(), "refuses:ssubscribe", "channels warning: requests that wait for another one poll"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := newFake(t, soundServer(c.info, nil))
			s := newStore(t, f, Config{Durability: c.level})
			findings, err := s.Check(t.Context())
			var got []string
			want, says, _ := strings.Cut(c.want, ": ")
			for _, finding := range findings {
				if !strings.Contains(finding.Detail, says) {
					t.Errorf("the finding does not say %q: %s", says, finding.Detail)
				}
				got = append(got, finding.Code+" "+finding.Severity.String())
				if !strings.HasPrefix(finding.Detail, f.Addr+": ") {
					t.Errorf("the finding does not name the server: %s", finding.Detail)
				}
			}
			if err != nil || strings.Join(got, ", ") != want {
				t.Errorf("found %q, %v; want %q", got, err, want)
			}
			refuses := strings.HasPrefix(c.want, "replica ") || strings.HasPrefix(c.want, "cluster-client ")
			if tried := strings.Contains(f.seen(), "spublish"); tried == refuses {
				t.Errorf("tried a channel: %v, on a server that refuses it: %v", tried, refuses)
			}

			var log strings.Builder
			opened, err := Open(t.Context(), newClient(t, f), Config{Prefix: servicePrefix, Durability: c.level, Logger: slog.New(slog.NewTextHandler(&log, nil))})
			if warnings := strings.Count(want, " warning"); strings.Count(log.String(), "level=WARN") != warnings || strings.Count(log.String(), "code=") != warnings {
				t.Errorf("open logs %q; want each of %q that is a warning once", log.String(), c.want)
			}
			if unsafe := strings.Contains(c.want, "unsafe"); unsafe != errors.Is(err, store.ErrMisconfigured) || unsafe == (opened != nil) {
				t.Errorf("open: %v, with findings %q", err, c.want)
			}
		})
	}
}

func TestCheckFindsAClusterThatIsNotServed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, mode, state string
		want              string // the codes of the findings
		err               error
	}{
		{"in order", "redis_mode:cluster", bulk("cluster_state:ok"), "", nil},
		{"without some slots", "redis_mode:cluster", bulk("cluster_state:fail\ncluster_slots_ok:16383"), "cluster-state", nil},
		{"that does not say", "redis_mode:cluster", "-NOPERM this user has no permissions to run the 'cluster|info' command\r\n", "", store.ErrMisconfigured},
		{"that is none", "", bulk("cluster_state:fail"), "", nil},
	} {
		f := newFake(t, soundServer(c.mode, func(command []string) string {
			if strings.EqualFold(command[0], "cluster") {
				return c.state
			}
			return ""
		}))
		findings, err := newClusterStore(t, f.Addr).Check(t.Context())
		var got []string
		for _, f := range findings {
			if f.Severity == store.Unsafe {
				got = append(got, f.Code)
			}
		}
		if !errors.Is(err, c.err) || strings.Join(got, ", ") != c.want {
			t.Errorf("a cluster %s: %q, %v; want %q, %v", c.name, got, err, c.want, c.err)
		}
	}
}

func TestCheckFindsOptionsOfTheClient(t *testing.T) {
	t.Parallel()
	pools := setPipelinePool(new(redis.Options), 0)
	for code, c := range map[string]struct {
		change func(*redis.Options)
		found  bool
	}{
		"context-timeouts": {func(o *redis.Options) { o.ContextTimeoutEnabled = false }, true},
		"pipeline-pool":    {func(o *redis.Options) { setPipelinePool(o, 0) }, pools},
	} {
		s := over(t, newClient(t, newFake(t, soundServer("", nil)), c.change), Config{})
		findings, err := s.Check(t.Context())
		found := len(findings) == 1 && findings[0].Code == code && findings[0].Severity == store.Warning
		if err != nil || found != c.found || len(findings) > 0 && !found {
			t.Errorf("%s: found %v, %v", code, findings, err)
		}
	}
}

// A server or a user that refuses one command or script, or answers wrong, is found
// before an operation has run.
func TestOpenTriesEveryOperation(t *testing.T) {
	t.Parallel()
	type trial struct {
		command any    // or the digest of a script
		answer  string // to it
		want    error
		step    string
	}
	const noPermission, tooOld = "-NOPERM this user has no permissions to run it\r\n", "-ERR unknown command\r\n"
	trials := []trial{
		{"set", bulk(string(recordOfClaim(store.Fingerprint{31: 1}))), store.ErrMisconfigured, "trying to claim"},
		{record.RenewScript.Digest, bulk("X"), store.ErrMisconfigured, "trying to renew"},
		{record.UnknownScript.Digest, bulk("X"), store.ErrMisconfigured, "trying to mark an outcome as unknown"},
		{record.CompleteScript.Digest, bulk("X"), store.ErrMisconfigured, "trying to complete"},
		{"pexpiretime", noPermission, store.ErrMisconfigured, "trying to read a record"},
		{"wait", noPermission, store.ErrMisconfigured, ""},
		{"wait", tooOld, store.ErrMisconfigured, ""},
		{"wait", "-ERR this service does not wait\r\n", store.ErrMisconfigured, ""},
		{"wait", "-ERR WAIT cannot be used with replica instances.\r\n", store.ErrUnavailable, ""},
		{"wait", ":0\r\n", store.ErrNotReplicated, ""},
	}
	for _, s := range []*record.Script{record.ClaimScript, record.RenewScript, record.CompleteScript, record.ReleaseScript, record.UnknownScript, record.InspectScript, record.ResolveScript} {
		trials = append(trials,
			trial{s.Digest, noPermission, store.ErrMisconfigured, ""},
			trial{s.Digest, "-ERR Error compiling script (new function): user_script:1: near '#'\r\n", store.ErrMisconfigured, ""},
			trial{s.Digest, "-BUSY Redis is busy running a script.\r\n", store.ErrUnavailable, ""},
			trial{s.Digest, bulk("?"), store.ErrUnknown, ""},
		)
	}
	for _, c := range trials {
		f := newFake(t, soundServer("", func(command []string) string {
			name := strings.ToLower(command[0])
			if name == c.command || len(command) > 1 && command[1] == c.command {
				return c.answer
			}
			return ""
		}))
		config := Config{Prefix: servicePrefix}
		switch c.command {
		case "pexpiretime":
			f.expiry = c.answer
		case "wait":
			config.Durability = Acked(1)
		}
		opened, err := Open(t.Context(), newClient(t, f), config)
		if !errors.Is(err, c.want) || opened != nil || !strings.Contains(err.Error(), c.step) {
			t.Errorf("%v answered %q: %v, want %v, %s", c.command, c.answer, err, c.want, c.step)
		}
	}
}
