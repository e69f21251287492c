package redis

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/servers"
	repriseredis "github.com/reprise-go/reprise/store/redis"
)

// No part of a sealed response, of the key or of the secret is in the files that Redis
// writes: neither in the snapshot nor in the log of its commands.
func TestRedisDumpHidesSealedResponses(t *testing.T) {
	t.Parallel()
	for name, sealed := range map[string]bool{"sealed": true, "in the clear": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := servers.Redis.Start(t, "appendonly=yes", "rdbcompression=no", "aof-use-rdb-preamble=no")
			client := labtest.RedisClient(t, server.Addr())
			private := labtest.RecordPrivate(t, labtest.RedisStore(t, client, repriseredis.Config{}), sealed)
			if err := client.Save(t.Context()).Err(); err != nil {
				t.Fatal(err)
			}
			dir, err := client.ConfigGet(t.Context(), "dir").Result()
			if err != nil {
				t.Fatal(err)
			}
			found := map[string]bool{}
			err = filepath.WalkDir(dir["dir"], func(path string, e fs.DirEntry, err error) error {
				kind := filepath.Ext(path)
				if err != nil || e.IsDir() || kind != ".rdb" && kind != ".aof" {
					return err
				}
				dump, err := os.ReadFile(path) //nolint:gosec // of a server of this test
				if err != nil || e.Name() == "appendonly.aof.1.base.aof" || e.Name() == "appendonly.aof.1.base.rdb" {
					return err // empty: everything was appended after it
				}
				private.WantAbsent(t, e.Name(), dump)
				found[kind] = true
				return nil
			})
			if err != nil || !found[".rdb"] || !found[".aof"] {
				t.Errorf("looked at %v, %v", found, err)
			}
		})
	}
}
