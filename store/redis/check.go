package repriseredis

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/internal/probe"
)

// Check implements [store.Checker]. It reads INFO from every primary, and CLUSTER INFO in
// a cluster, and tries to publish to a channel and to subscribe to it. It does not write.
// The codes that it reports are listed in docs/operate/redis.md.
func (s *Store) Check(ctx context.Context) ([]store.Finding, error) {
	nodes, err := s.primaries(ctx)
	if err != nil {
		return nil, err
	}
	findings := report("", []row{
		{!s.ctxTimeouts, "context-timeouts", store.Warning, "the client ignores context deadlines: a server that hangs blocks requests for the client's ReadTimeout; set ContextTimeoutEnabled"},
		{slices.ContainsFunc(nodes, hasPipelinePool), "pipeline-pool", store.Warning, "the client has a second pool of connections, for pipelines: they come on top of PoolSize, the connections in use do not count them, and a call that waits for a new one may fail as busy; set PipelinePoolSize to -1, and no sizes of buffers for pipelines"},
	})
	for _, node := range nodes {
		info, err := readInfo(ctx, node)
		if err != nil {
			return nil, readError(err)
		}
		findings = append(findings, report(info.address(node)+": ", s.look(ctx, node, info))...)
	}
	return findings, nil
}

// row is a finding if it holds. Of several rows with one code, the first that holds
// counts.
type row struct {
	holds    bool
	code     string
	severity store.Severity
	detail   string
}

// report returns the findings among rows. Each detail starts with node.
func report(node string, rows []row) (findings []store.Finding) {
	last := ""
	for _, r := range rows {
		if r.holds && r.code != last {
			findings = append(findings, store.Finding{Code: r.code, Severity: r.severity, Detail: node + r.detail})
			last = r.code
		}
	}
	return findings
}

// nearlyFull is the share of a limit, in percent, above which it is nearly used up.
const nearlyFull = 85

// look returns what there may be to find at a server.
//
// INFO does not show the snapshot schedule; a server that does not show it otherwise is
// assumed to be durable in a way of its own. Only Active-Active databases have
// crdt_config_version:
// https://redis.io/docs/latest/operate/rs/databases/active-active/develop/develop-for-aa/
func (s *Store) look(ctx context.Context, node *redis.Client, info serverInfo) []row {
	d, text := s.config.Durability, fmt.Sprintf
	policy, fsync := cmp.Or(info["maxmemory_policy"], info["maxmemory-policy"]), info["appendfsync"]
	schedule, shown := info["save"]
	most, bound := info.payloadLimit()
	version, aof := info["redis_version"], info["aof_enabled"] == "1"
	primary, replicas := info["role"] == "master", int(info.number("connected_slaves"))

	// The server leaves some buffers out when it compares its memory with the limit.
	limit, used := info.number("maxmemory"), info.number("used_memory")-info.number("mem_not_counted_for_evict")
	machine, resident := info.number("total_system_memory"), info.number("used_memory_rss")
	evicts := policy != "noeviction" && policy != ""
	cluster := info.isCluster()
	var channels error
	if primary && cluster == (s.cluster != nil) {
		channels = s.tryChannel(ctx, node)
	}
	return []row{
		{policy == "", "eviction-policy", store.Warning, "the server does not report its maxmemory-policy; make sure that it is noeviction: any other policy evicts records, whose operations then run again"},
		{evicts && info["maxmemory"] == "0", "eviction-policy", store.Warning, text("maxmemory-policy %s will evict, once maxmemory is set, records of running and finished operations, which then run again; set maxmemory-policy noeviction", policy)},
		{evicts, "eviction-policy", store.Unsafe, text("maxmemory-policy %s evicts records of running and finished operations, which then run again; set maxmemory-policy noeviction", policy)},

		{limit > 0 && used > limit && policy == "noeviction", "memory", store.Unsafe, text("the server uses %.0f %% of its maxmemory, so every claim fails; raise maxmemory, or delete keys that are not records", 100*used/limit)},
		{limit > 0 && used > limit*nearlyFull/100, "memory", store.Warning, text("the server uses %.0f %% of its maxmemory: above that every claim fails; raise maxmemory, or delete keys that are not records", 100*used/limit)},
		{limit == 0 && machine > 0 && resident > machine*nearlyFull/100, "memory", store.Warning, text("the server uses %.0f %% of the memory of its machine, and has no maxmemory: the system may kill it, which loses what is not on disk; set maxmemory, or give it more memory", 100*resident/machine)},

		{!probe.AtLeast(version, 7, 0), "server-version", store.Unsafe, text("version %s lacks sharded pub/sub and scripts that may exceed maxmemory; use Redis 7.0 or newer", version)},
		{d.level == fsynced && !probe.AtLeast(version, 7, 2), "server-version", store.Unsafe, text("version %s has no WAITAOF, which %v needs; use Redis 7.2 or newer", version, d)},

		{d.level == fsynced && !aof, "persistence", store.Unsafe, text("appendonly is off, so %v can never be met; set appendonly yes", d)},
		{aof && info["aof_last_write_status"] == "err" || !aof && info["rdb_last_bgsave_status"] == "err", "persistence", store.Warning, "the last write to disk failed, so a restart loses everything since the one before; see the log of the server"},
		{!aof && shown && schedule == "", "persistence", store.Warning, "neither appendonly nor snapshots are on, so a restart loses every record; set appendonly yes"},
		{!aof && shown, "persistence", store.Warning, "only snapshots are on, so a crash loses every record since the last one, and their operations run again; set appendonly yes"},

		{!primary, "replica", store.Unsafe, "the server is a replica, which refuses writes; connect to the primary"},
		{primary && replicas < d.replicas, "replicas", store.Unsafe, text("%d replicas are connected and %v waits for %d, so every claim fails; add replicas", replicas, d, d.replicas)},
		{cluster && s.cluster == nil, "cluster-client", store.Unsafe, "the server is part of a cluster and the client is not a cluster client, so keys on other nodes fail; use redis.NewClusterClient"},
		{cluster && s.cluster != nil && info["cluster_state"] != "ok", "cluster-state", store.Unsafe, text("cluster_state is %s, %s of 16384 slots are served; repair the cluster", info["cluster_state"], info["cluster_slots_ok"])},
		{info["crdt_config_version"] != "", "active-active", store.Unsafe, "the database is Active-Active: each region takes writes, so two regions may claim one key, and both run its operation; use a database of one region"},

		// By default, each limit is far above the largest payload.
		{most < store.MaxPayload, "payload-limit", store.Warning, text("%s lets no payload of more than %d bytes pass, so the completion of a longer response fails (ErrFull), and its operation may run again when its lease ends; raise it above the longest response that you keep", bound, most)},
		{d.level == fsynced && fsync != "always" && fsync != "", "appendfsync", store.Warning, text("appendfsync is %s, so a write waits for a second or two; set appendfsync always", fsync)},
		{fsync == "no" && aof, "appendfsync", store.Warning, "appendfsync is no, so a crash of the machine loses the records that its kernel has not written yet, often half a minute of them, and their operations run again; set appendfsync everysec or always"},
		{channels != nil, "channels", store.Warning, text("sharded pub/sub does not work, so requests that wait for another one poll; the server may lack it, or the user the permission for its channels: %v", channels)},
	}
}

// hasPipelinePool reports whether the client of a node has a pool of connections for
// pipelines only, as its statistics tell. Releases of go-redis before 9.22 have none.
func hasPipelinePool(node *redis.Client) bool {
	stats := reflect.ValueOf(node.PoolStats()).Elem().FieldByName("PipelineStats")
	return stats.Kind() == reflect.Pointer && !stats.IsNil()
}

// tryChannel publishes to a channel at node and subscribes to it.
func (s *Store) tryChannel(ctx context.Context, node *redis.Client) error {
	id, err := s.idAt(ctx, node)
	if err != nil {
		return err
	}
	if err := node.SPublish(ctx, s.key(id), "").Err(); err != nil {
		return err
	}
	sub := node.SSubscribe(ctx, s.key(id))
	defer func() { _ = sub.Close() }()
	_, err = sub.ReceiveTimeout(ctx, time.Second)
	return err
}

// serverInfo has the fields of INFO and CLUSTER INFO, and the settings of a server. A
// server that refuses CONFIG, as managed ones do, shows no settings.
type serverInfo map[string]string

func readInfo(ctx context.Context, node *redis.Client) (serverInfo, error) {
	text, err := node.Info(ctx).Result()
	if err != nil {
		return nil, err
	}
	info := settings(ctx, node)
	info.parse(text)
	if info.isCluster() {
		text, err := node.ClusterInfo(ctx).Result()
		if err != nil {
			return nil, err
		}
		info.parse(text)
	}
	return info, nil
}

// settings returns the settings of a server, and none of one that is away.
func settings(ctx context.Context, node *redis.Client) serverInfo {
	info := serverInfo{}
	maps.Copy(info, node.ConfigGet(ctx, "*").Val())
	return info
}

func (i serverInfo) parse(text string) {
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			i[name] = value
		}
	}
}

// isCluster reports whether the server is part of a cluster. Valkey has another name for
// it.
func (i serverInfo) isCluster() bool {
	return i["redis_mode"] == "cluster" || i["server_mode"] == "cluster"
}

// number returns a field that is a number, and 0 where there is none.
func (i serverInfo) number(name string) float64 {
	n, _ := strconv.ParseFloat(i[name], 64)
	return n
}

func (i serverInfo) address(node *redis.Client) string {
	if addr := node.Options().Addr; strings.Contains(addr, ":") {
		return addr
	}
	return "port " + i["tcp_port"] // behind Sentinel the client has no address
}

// payloadLimit returns the size of the largest payload of a completion that may pass the
// server, and the setting that bounds it. A larger one never passes. The name is empty
// when no setting that the server shows is below [math.MaxInt64].
func (i serverInfo) payloadLimit() (most int64, name string) {
	most = math.MaxInt64
	for _, setting := range []string{
		"client-query-buffer-limit", // closes the connection
		"proto-max-bulk-len",        // answers an error, and closes the connection
		"maxmemory-clients",         // of all connections together: closes the largest
	} {
		digits, isShare := strings.CutSuffix(i[setting], "%")
		size, _ := strconv.ParseInt(digits, 10, 64)
		if isShare { // of maxmemory
			size *= int64(i.number("maxmemory")) / 100
		}
		if setting == "client-query-buffer-limit" {
			size -= int64(len("\r\n")) // which it counts with the payload
		}
		if size > 0 && size < most {
			most, name = size, setting
		}
	}
	return most, name
}
