package repriseredis

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/reprise-go/reprise/core/store"
)

// Check implements [store.Checker]. It reads INFO from every primary, and CLUSTER INFO in
// a cluster, and tries to publish to a channel and to subscribe to it. It does not write.
// The codes that it reports are listed in docs/operate/redis.md.
func (s *Store) Check(ctx context.Context) ([]store.Finding, error) {
	var r report
	if !s.options.ctxTimeouts {
		r.add("context-timeouts", store.Warning, "the client ignores context deadlines: a server that hangs blocks requests for the client's ReadTimeout; set ContextTimeoutEnabled")
	}
	nodes, err := s.primaries(ctx)
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(nodes, hasPipelinePool) {
		r.add("pipeline-pool", store.Warning, "the client has a second pool of connections, for pipelines: they come on top of PoolSize, the connections in use do not count them, and a call that waits for a new one may fail as busy; set PipelinePoolSize to -1, and no sizes of buffers for pipelines")
	}
	for _, node := range nodes {
		info, err := readInfo(ctx, node)
		if err != nil {
			return nil, readError(err)
		}
		r.node = info.address(node) + ": "
		policy := info["maxmemory_policy"]
		if policy == "" {
			policy = setting(ctx, node, "maxmemory-policy")
		}
		r.eviction(info, policy)
		r.memory(info, policy)
		r.guarantees(info, setting(ctx, node, "save"), s.durability, s.options.clusterClient)
		if limit := payloadLimitOf(ctx, node); limit.size < store.MaxPayload { // by default each is far above that
			r.add("payload-limit", store.Warning, "%s lets no payload of more than %d bytes pass, so the completion of a longer response fails (ErrFull), and its operation may run again when its lease ends; raise it above the longest response that you keep", limit.name, limit.size)
		}
		switch policy := setting(ctx, node, "appendfsync"); {
		case s.durability.level == fsynced && policy != "always" && policy != unknownSetting:
			r.add("appendfsync", store.Warning, "appendfsync is %s, so a write waits for a second or two; set appendfsync always", policy)
		case policy == "no" && info["aof_enabled"] == "1":
			r.add("appendfsync", store.Warning, "appendfsync is no, so a crash of the machine loses the records that its kernel has not written yet, often half a minute of them, and their operations run again; set appendfsync everysec or always")
		}
		if info["role"] == "master" && info.isCluster() == s.options.clusterClient {
			if err := s.tryChannel(ctx, node); err != nil {
				r.add("channels", store.Warning, "sharded pub/sub does not work, so requests that wait for another one poll; the server may lack it, or the user the permission for its channels: %v", err)
			}
		}
	}
	return r.findings, nil
}

// hasPipelinePool reports whether the client of a node has a pool of connections for
// pipelines only, as its statistics tell. Releases of go-redis before 9.22 have none.
func hasPipelinePool(node *redis.Client) bool {
	stats := reflect.ValueOf(node.PoolStats()).Elem().FieldByName("PipelineStats")
	return stats.Kind() == reflect.Pointer && !stats.IsNil()
}

// unsafeError returns the unsafe findings as one error, nil when there are none.
func unsafeError(findings []store.Finding) error {
	var unsafe []string
	for _, f := range findings {
		if f.Severity == store.Unsafe {
			unsafe = append(unsafe, f.Code+": "+f.Detail)
		}
	}
	if len(unsafe) == 0 {
		return nil
	}
	return misconfigured("%s", strings.Join(unsafe, "; "))
}

// logWarnings logs the findings that do not make Open fail.
func logWarnings(ctx context.Context, logger *slog.Logger, findings []store.Finding) {
	for _, f := range findings {
		if f.Severity == store.Warning {
			logger.LogAttrs(ctx, slog.LevelWarn, "repriseredis: "+f.Detail, slog.String("code", f.Code))
		}
	}
}

// report collects the findings of all nodes.
type report struct {
	node     string // prefix of each detail: the address of the node
	findings []store.Finding
}

func (r *report) add(code string, severity store.Severity, format string, args ...any) {
	r.findings = append(r.findings, store.Finding{Code: code, Severity: severity, Detail: r.node + fmt.Sprintf(format, args...)})
}

func (r *report) eviction(info serverInfo, policy string) {
	severity, when := store.Unsafe, "evicts"
	switch {
	case policy == "noeviction":
		return
	case policy == "" || policy == unknownSetting:
		r.add("eviction-policy", store.Warning, "the server does not report its maxmemory-policy; make sure that it is noeviction: any other policy evicts records, whose operations then run again")
		return
	case info["maxmemory"] == "0":
		severity, when = store.Warning, "will evict, once maxmemory is set,"
	}
	r.add("eviction-policy", severity, "maxmemory-policy %s %s records of running and finished operations, which then run again; set maxmemory-policy noeviction", policy, when)
}

// nearlyFull is the share of a limit, in percent, above which it is nearly used up.
const nearlyFull = 85

// memory checks how much of maxmemory is used, without the buffers that the server leaves
// out when it compares the two, or, where there is none, how much of the machine.
func (r *report) memory(info serverInfo, policy string) {
	size := func(name string) float64 { n, _ := strconv.ParseFloat(info[name], 64); return n }
	limit, used := size("maxmemory"), size("used_memory")-size("mem_not_counted_for_evict")
	if limit == 0 {
		if limit, used = size("total_system_memory"), size("used_memory_rss"); limit > 0 && used > limit*nearlyFull/100 {
			r.add("memory", store.Warning, "the server uses %.0f %% of the memory of its machine, and has no maxmemory: the system may kill it, which loses what is not on disk; set maxmemory, or give it more memory", 100*used/limit)
		}
		return
	}
	switch {
	case used > limit && policy == "noeviction":
		r.add("memory", store.Unsafe, "the server uses %.0f %% of its maxmemory, so every claim fails; raise maxmemory, or delete keys that are not records", 100*used/limit)
	case used > limit*nearlyFull/100:
		r.add("memory", store.Warning, "the server uses %.0f %% of its maxmemory: above that every claim fails; raise maxmemory, or delete keys that are not records", 100*used/limit)
	}
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

// guarantees checks what INFO says. The snapshot schedule is not in it; a server that
// does not show it is assumed to be durable in a way of its own. Only Active-Active
// databases have the last field:
// https://redis.io/docs/latest/operate/rs/databases/active-active/develop/develop-for-aa/
func (r *report) guarantees(info serverInfo, schedule string, d Durability, clusterClient bool) {
	var major, minor int
	_, _ = fmt.Sscanf(info["redis_version"], "%d.%d", &major, &minor)
	switch {
	case major < 7:
		r.add("server-version", store.Unsafe, "version %s lacks sharded pub/sub and scripts that may exceed maxmemory; use Redis 7.0 or newer", info["redis_version"])
	case d.level == fsynced && major == 7 && minor < 2:
		r.add("server-version", store.Unsafe, "version %s has no WAITAOF, which %v needs; use Redis 7.2 or newer", info["redis_version"], d)
	}
	switch aof := info["aof_enabled"] == "1"; {
	case d.level == fsynced && !aof:
		r.add("persistence", store.Unsafe, "appendonly is off, so %v can never be met; set appendonly yes", d)
	case aof && info["aof_last_write_status"] == "err", !aof && info["rdb_last_bgsave_status"] == "err":
		r.add("persistence", store.Warning, "the last write to disk failed, so a restart loses everything since the one before; see the log of the server")
	case !aof && schedule == "":
		r.add("persistence", store.Warning, "neither appendonly nor snapshots are on, so a restart loses every record; set appendonly yes")
	case !aof && schedule != unknownSetting:
		r.add("persistence", store.Warning, "only snapshots are on, so a crash loses every record since the last one, and their operations run again; set appendonly yes")
	}
	replicas, _ := strconv.Atoi(info["connected_slaves"])
	switch {
	case info["role"] != "master":
		r.add("replica", store.Unsafe, "the server is a replica, which refuses writes; connect to the primary")
	case replicas < d.replicas:
		r.add("replicas", store.Unsafe, "%d replicas are connected and %v waits for %d, so every claim fails; add replicas", replicas, d, d.replicas)
	}
	switch {
	case info.isCluster() && !clusterClient:
		r.add("cluster-client", store.Unsafe, "the server is part of a cluster and the client is not a cluster client, so keys on other nodes fail; use redis.NewClusterClient")
	case clusterClient && info.isCluster() && info["cluster_state"] != "ok":
		r.add("cluster-state", store.Unsafe, "cluster_state is %s, %s of 16384 slots are served; repair the cluster", info["cluster_state"], info["cluster_slots_ok"])
	}
	if _, ok := info["crdt_config_version"]; ok {
		r.add("active-active", store.Unsafe, "the database is Active-Active: each region takes writes, so two regions may claim one key, and both run its operation; use a database of one region")
	}
}

// unknownSetting is the value of a setting that the server does not show: managed servers
// refuse CONFIG.
const unknownSetting = "unknown"

func setting(ctx context.Context, node *redis.Client, name string) string {
	values, err := node.ConfigGet(ctx, name).Result()
	if err != nil {
		return unknownSetting
	}
	return values[name]
}

// serverInfo has the fields of INFO and CLUSTER INFO.
type serverInfo map[string]string

func readInfo(ctx context.Context, node *redis.Client) (serverInfo, error) {
	text, err := node.Info(ctx).Result()
	if err != nil {
		return nil, err
	}
	info := make(serverInfo, 256)
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

func (i serverInfo) address(node *redis.Client) string {
	if addr := node.Options().Addr; strings.Contains(addr, ":") {
		return addr
	}
	return "port " + i["tcp_port"] // behind Sentinel the client has no address
}

// payloadLimit is the size of the largest payload that may pass a server, and the setting
// that bounds it. A larger payload never passes. The name is empty when no setting that
// the server shows is below [math.MaxInt64].
type payloadLimit struct {
	size int64
	name string
}

// payloadLimitOf asks a server for the settings that bound the payload of a completion.
// It knows no limit of a server that refuses CONFIG.
func payloadLimitOf(ctx context.Context, server *redis.Client) payloadLimit {
	least := payloadLimit{size: math.MaxInt64}
	for _, of := range []struct {
		name   string
		framed int64 // bytes that count besides those of the payload
	}{
		{"client-query-buffer-limit", int64(len("\r\n"))}, // closes the connection
		{"proto-max-bulk-len", 0},                         // answers an error, and closes the connection
		{"maxmemory-clients", 0},                          // of all connections together: closes the largest
	} {
		size, known := setSize(ctx, server, of.name)
		if !known {
			break // it is away, or refuses CONFIG
		}
		if size > 0 && size-of.framed < least.size {
			least = payloadLimit{size: size - of.framed, name: of.name}
		}
	}
	return least
}

// setSize returns a setting in bytes, and zero for none. A percentage is of maxmemory.
func setSize(ctx context.Context, server *redis.Client, name string) (size int64, known bool) {
	value := setting(ctx, server, name)
	text, isShare := strings.CutSuffix(value, "%")
	n, _ := strconv.ParseInt(text, 10, 64)
	if isShare {
		memory, _ := strconv.ParseInt(setting(ctx, server, "maxmemory"), 10, 64)
		n *= memory / 100
	}
	return n, value != unknownSetting
}

// refuse returns why a payload of size bytes does not pass, and nil when it may.
func (l payloadLimit) refuse(size int) error {
	if int64(size) <= l.size {
		return nil
	}
	return special{fmt.Errorf("%s of the server lets no payload of more than %d bytes pass, and this one has %d", l.name, l.size, size), full}
}
