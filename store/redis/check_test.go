package repriseredis

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	reprise "github.com/reprise-go/reprise/core"
)

// sound is what a server says about itself that gives every guarantee.
const sound = "redis_version:7.2.4\nredis_mode:standalone\nrole:master\nconnected_slaves:2\nmaxmemory:0\nmaxmemory_policy:noeviction\n" +
	"aof_enabled:1\naof_last_write_status:ok\nrdb_last_bgsave_status:ok\ntcp_port:6379\n"

func TestCheckFindsWhatBreaksAGuarantee(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		level Durability
		info  string // lines that replace those of sound
		want  string // codes and grades
	}{
		{"sound", Acked(2), "", ""},
		{"sound on disk", Fsynced(1), "", ""},
		{"evicts the oldest", Async(), "maxmemory:100\nmaxmemory_policy:allkeys-lru", "eviction-policy unsafe"},
		{"evicts what expires first", Async(), "maxmemory:100\nmaxmemory_policy:volatile-ttl", "eviction-policy unsafe"},
		{"would evict", Async(), "maxmemory_policy:allkeys-lru", "eviction-policy warning"},
		{"bounded and evicts nothing", Async(), "maxmemory:100", ""},
		{"too old", Async(), "redis_version:6.2.14", "server-version unsafe"},
		{"too old for WAITAOF", Fsynced(0), "redis_version:7.0.15", "server-version unsafe"},
		{"new", Fsynced(0), "redis_version:8.0.1", ""},
		{"a replica", Async(), "role:slave", "replica unsafe"},
		{"too few replicas", Acked(3), "", "replicas unsafe"},
		{"a cluster without its client", Async(), "redis_mode:cluster", "cluster-client unsafe"},
		{"no file for WAITAOF", Fsynced(0), "aof_enabled:0", "persistence unsafe"},
		{"the file cannot be written", Async(), "aof_last_write_status:err", "persistence warning"},
		{"the snapshot cannot be written", Async(), "aof_enabled:0\nrdb_last_bgsave_status:err", "persistence warning"},
		{"nothing on disk", Async(), "aof_enabled:0", "persistence warning"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := newFake(t, func(_, _ int, command []string) string {
				switch {
				case strings.EqualFold(command[0], "config") && command[2] == "appendfsync":
					return "*2\r\n" + bulk("appendfsync") + bulk("always")
				case strings.EqualFold(command[0], "config"):
					return "*2\r\n" + bulk("save") + bulk("")
				case strings.EqualFold(command[0], "cluster"):
					return bulk("cluster_state:ok")
				}
				return bulk(sound + c.info)
			})
			s := newStore(t, f, Config{Durability: c.level})
			findings, err := s.Check(t.Context())
			var got []string
			for _, finding := range findings {
				got = append(got, finding.Code+" "+finding.Severity.String())
				if !strings.HasPrefix(finding.Detail, f.addr+": ") {
					t.Errorf("the finding does not name the server: %s", finding.Detail)
				}
			}
			if err != nil || strings.Join(got, ", ") != c.want {
				t.Errorf("found %q, %v; want %q", got, err, c.want)
			}

			opened, err := Open(t.Context(), newClient(t, f), Config{Durability: c.level})
			if unsafe := strings.Contains(c.want, "unsafe"); unsafe != errors.Is(err, reprise.ErrMisconfigured) || unsafe == (opened != nil) {
				t.Errorf("open: %v, with findings %q", err, c.want)
			}
		})
	}
}

func TestCheckFindsSlowFsync(t *testing.T) {
	t.Parallel()
	f := newFake(t, func(_, _ int, command []string) string {
		if strings.EqualFold(command[0], "config") {
			return "*2\r\n" + bulk(command[2]) + bulk("everysec")
		}
		return bulk(sound)
	})
	findings, err := newStore(t, f, Config{Durability: Fsynced(0)}).Check(t.Context())
	if err != nil || len(findings) != 1 || findings[0].Code != "appendfsync" {
		t.Errorf("found %v, %v", findings, err)
	}
}

// Managed servers refuse CONFIG; what is unknown is no finding.
func TestCheckNeedsNoConfig(t *testing.T) {
	t.Parallel()
	f := newFake(t, func(_, _ int, command []string) string {
		if strings.EqualFold(command[0], "config") {
			return "-ERR unknown command 'config'\r\n"
		}
		return bulk(sound + "aof_enabled:0")
	})
	findings, err := newStore(t, f, Config{}).Check(t.Context())
	if err != nil || len(findings) != 0 {
		t.Errorf("found %v, %v", findings, err)
	}
}

func TestCheckSaysThatItCouldNotLook(t *testing.T) {
	t.Parallel()
	f := newFake(t, func(_, _ int, _ []string) string {
		return "-NOPERM this user has no permissions to run the 'info' command\r\n"
	})
	if findings, err := newStore(t, f, Config{}).Check(t.Context()); !errors.Is(err, reprise.ErrMisconfigured) || findings != nil {
		t.Errorf("check = %v, %v", findings, err)
	}
}

func TestCheckFindsAClientThatIgnoresContexts(t *testing.T) {
	t.Parallel()
	f := newFake(t, func(_, _ int, _ []string) string { return bulk(sound) })
	client := redis.NewClient(&redis.Options{Addr: f.addr, Protocol: 2, DisableIdentity: true})
	t.Cleanup(func() { _ = client.Close() })
	s, err := New(client, Config{})
	if err != nil {
		t.Fatal(err)
	}
	findings, err := s.Check(t.Context())
	if err != nil || len(findings) != 1 || findings[0].Code != "context-timeouts" || findings[0].Severity != reprise.Warning {
		t.Errorf("found %s, %v", fmt.Sprint(findings), err)
	}
}
