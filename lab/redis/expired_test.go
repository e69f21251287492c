package redis

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/servers"
	repriseredis "github.com/reprise-go/reprise/store/redis"
)

// redisHolds returns where a server has a text: in the value of a key, in its dump, in
// the snapshot, or in the log of its commands after it was rewritten.
func redisHolds(t *testing.T, client *redis.Client, text string) (places []string) {
	t.Helper()
	ctx := t.Context()
	keys, err := client.Keys(ctx, "*").Result()
	redisWant(t, "keys", err, nil)
	for _, key := range keys {
		value, err := client.Get(ctx, key).Result()
		redisWant(t, "get", err, nil)
		dump, err := client.Dump(ctx, key).Result()
		redisWant(t, "dump", err, nil)
		if strings.Contains(value, text) {
			places = append(places, "value")
		}
		if strings.Contains(dump, text) {
			places = append(places, "dump")
		}
	}
	redisWant(t, "save", client.Save(ctx).Err(), nil)
	redisWant(t, "rewrite the log", client.BgRewriteAOF(ctx).Err(), nil)
	labtest.Eventually(t, "the log is rewritten", func() bool {
		info, err := client.Info(ctx, "persistence").Result()
		redisWant(t, "info", err, nil)
		return strings.Contains(info, "aof_rewrite_in_progress:0") && strings.Contains(info, "aof_rewrite_scheduled:0") &&
			strings.Contains(info, "aof_last_bgrewrite_status:ok")
	})
	redisFiles(t, client, func(_, kind string, file []byte) {
		if bytes.Contains(file, []byte(text)) && !slices.Contains(places, kind) {
			places = append(places, kind)
		}
	})
	return places
}

// redisFiles looks at the snapshots of a server and at the logs of its commands.
func redisFiles(t *testing.T, client *redis.Client, look func(name, kind string, file []byte)) {
	t.Helper()
	dir, err := client.ConfigGet(t.Context(), "dir").Result()
	redisWant(t, "directory", err, nil)
	seen := map[string]bool{}
	err = filepath.WalkDir(dir["dir"], func(path string, e fs.DirEntry, err error) error {
		kind := filepath.Ext(path)
		if err != nil || e.IsDir() || kind != ".rdb" && kind != ".aof" {
			return err
		}
		file, err := os.ReadFile(path) //nolint:gosec // of a server of this test
		if os.IsNotExist(err) {
			return nil // the log before a rewrite
		}
		seen[kind] = true
		look(e.Name(), kind, file)
		return err
	})
	if err != nil || !seen[".rdb"] || !seen[".aof"] {
		t.Fatalf("looked at %v, %v", seen, err)
	}
}

// No byte of a payload is left on the server when its retention has ended, although the
// record has not, and although no claim came by. One whose retention runs is everywhere.
func TestRedisAPayloadIsGoneAfterItsRetention(t *testing.T) {
	t.Parallel()
	const gone, kept = "4111 1111 1111 1111", "5555 5555 5555 4444"
	for name, write := range map[string]func(t *testing.T, st *repriseredis.Store, r store.ClaimRequest, payload string){
		"completed": func(t *testing.T, st *repriseredis.Store, r store.ClaimRequest, payload string) {
			granted := redisMustClaim(t, st, r, store.Claimed)
			redisWant(t, "complete", st.Complete(t.Context(), redisCompletion(r, granted, payload)), nil)
		},
		"completed while watched": func(t *testing.T, st *repriseredis.Store, r store.ClaimRequest, payload string) {
			redisMustClaim(t, st, r, store.Claimed)
			redisWaits(t, st, r)
			redisWant(t, "complete", redisComplete(t, st, r, payload), nil)
		},
		"resolved": func(t *testing.T, st *repriseredis.Store, r store.ClaimRequest, payload string) {
			asked := r.Retention
			r.Retention, r.Lease = r.Horizon, time.Millisecond
			granted := redisMustClaim(t, st, r, store.Claimed)
			labtest.Eventually(t, "the lease ends", func() bool {
				return st.Resolve(t.Context(), r.ID, store.Resolution{Fence: granted.Fence, Payload: []byte(payload), Retention: asked}) == nil
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := servers.Redis.Start(t, "appendonly=yes", "rdbcompression=no", "aof-use-rdb-preamble=no")
			client := labtest.RedisClient(t, server.Addr())
			st := labtest.RedisStore(t, client, repriseredis.Config{})
			brief, long := redisClaim(), redisClaim()
			brief.Retention, brief.Horizon, long.Horizon = 100*time.Millisecond, time.Hour, time.Hour
			write(t, st, brief, gone)
			write(t, st, long, kept)
			labtest.Eventually(t, "the payload is deleted", func() bool { return client.DBSize(t.Context()).Val() == 3 }) // counts what expired, too
			for text, want := range map[string]string{gone: "", kept: "value dump .aof .rdb"} {
				places := redisHolds(t, client, text)
				if got := strings.Join(places, " "); got != want {
					t.Errorf("%s is in %q, want %q", text, got, want)
				}
			}
			redisMustClaim(t, st, redisRival(brief), store.Expired)
			redisMustClaim(t, st, redisRival(long), store.Completed)
			if shown, err := st.Inspect(t.Context(), brief.ID); err != nil || shown.State != store.StateExpired || shown.Validity < brief.Horizon-time.Minute {
				t.Errorf("inspect shows %+v, %v", shown, err)
			}
		})
	}
}
