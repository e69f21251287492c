package engine

import (
	"context"
	"encoding/binary"
	"flag"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/lab/serve/mysqlserver"
	"github.com/reprise-go/reprise/lab/servers"
	repriseredis "github.com/reprise-go/reprise/store/redis"
)

// Two processes over one store: one of them counts the records that others left behind,
// and its lock goes with it.
func TestOneProcessCountsTheStuckRecordsOfAStore(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(*testing.T) store.Store{
		"memory": func(*testing.T) store.Store { return memstore.New() },
		"redis": func(t *testing.T) store.Store {
			t.Helper()
			return labtest.RedisStore(t, labtest.RedisClient(t, servers.Redis.Shared(t).Addr()), repriseredis.Config{Prefix: labtest.RedisPrefix()})
		},
		"postgres": func(t *testing.T) store.Store {
			t.Helper()
			return labtest.SetupPostgres(t, servers.SharedPostgres(t)).Leased(t)
		},
		"postgres-tx": func(t *testing.T) store.Store {
			t.Helper()
			return labtest.SetupPostgres(t, servers.SharedPostgres(t)).Transactional(t)
		},
		"mysql-tx": func(t *testing.T) store.Store {
			t.Helper()
			return mysqlserver.Transactional(t, mysqlserver.New(t, servers.SharedMariaDB(t)))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			st := open(t)
			for i := range 3 {
				r := store.ClaimRequest{
					ID: store.DeriveID("tenant", "", strconv.Itoa(i)), Owner: store.NewOwner(), Lease: time.Minute,
					Policy: store.Policy{Label: "payments", Retention: time.Hour, AtMostOnce: true},
				}
				if _, err := st.Claim(t.Context(), r); err != nil {
					t.Fatal(err)
				}
				if err := st.Unknown(t.Context(), store.UnknownRequest{ID: r.ID, Owner: r.Owner, Reason: "the bank timed out"}); err != nil {
					t.Fatal(err)
				}
			}
			var engines []*reprise.Engine
			for range 2 {
				engines = append(engines, newFaultyEngine(t, st, reprise.Config{}).Engine)
			}
			counted := make([][]reprise.StuckCount, 2)
			reports := func(i int) (ok bool) {
				counted[i], ok = engines[i].Stuck()
				return ok
			}
			for end := time.Now().Add(20 * time.Second); !reports(0) && time.Now().Before(end); {
				inTime(20 * time.Millisecond)
			}
			if want := (reprise.StuckCount{Label: "payments", State: store.StateUnknown, Count: 3}); !slices.Contains(counted[0], want) {
				t.Fatalf("counted %v, want %v in it", counted[0], want)
			}
			reports(1)
			inTime(200 * time.Millisecond)
			if reports(1) || !reports(0) {
				t.Errorf("both processes count, or neither: %v", counted)
			}
			locks := func() (list []store.Record) {
				inspector, _ := store.As[store.Inspector](st)
				page, err := inspector.List(t.Context(), store.Query{States: store.States(store.StateRunning), Label: store.ProbeLabel, Limit: 10})
				if err != nil {
					t.Fatal(err)
				}
				return page.Records
			}
			if list := locks(); len(list) != 1 || !strings.Contains(list[0].Description, "counts stuck records") {
				t.Errorf("the locks are: %+v", list)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			if err := engines[0].Close(ctx); err != nil {
				t.Error(err)
			}
			if list := locks(); len(list) != 0 {
				t.Errorf("after Close the lock is held: %+v", list)
			}
		})
	}
}

var benchRecords = flag.Int("stuck-records", 100_000, "completed records that BenchmarkCountOfStuckRecords reads")

// The listing of a count, without its rests, which take nine times as long.
func BenchmarkCountOfStuckRecords(b *testing.B) {
	b.Run("redis", func(b *testing.B) {
		client, prefix := labtest.RedisClient(b, servers.Redis.Shared(b).Addr()), labtest.RedisPrefix()
		st := labtest.RedisStore(b, client, repriseredis.Config{Prefix: prefix})
		first := completed(b, st)
		pipe := client.Pipeline()
		for i := 1; i < *benchRecords; i++ {
			pipe.Copy(b.Context(), labtest.RedisKey(prefix, first), labtest.RedisKey(prefix, numbered(i)), 0, false)
			if i%10_000 == 0 || i == *benchRecords-1 {
				if _, err := pipe.Exec(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
		}
		countAll(b, st)
	})
	b.Run("postgres", func(b *testing.B) {
		f := labtest.SetupPostgres(b, servers.SharedPostgres(b))
		st := f.Leased(b)
		completed(b, st)
		table := f.Config.Schema + ".reprise_records"
		for _, sql := range []string{
			fmt.Sprintf(`INSERT INTO %[1]s (lease_until, valid_until, expires_at, created_at, fence, attempt, state, version, at_most_once, id, owner, fingerprint, payload, label, retention, horizon)
				SELECT lease_until, valid_until, expires_at, created_at, fence, attempt, state, version, at_most_once, sha256(i::text::bytea), owner, fingerprint, payload, label, retention, horizon
				FROM %[1]s, generate_series(2, %[2]d) AS i`, table, *benchRecords),
			"VACUUM ANALYZE " + table,
		} {
			if _, err := f.Pool.Exec(b.Context(), sql); err != nil {
				b.Fatal(err)
			}
		}
		countAll(b, st)
	})
}

func numbered(i int) store.ID {
	return store.DeriveID("tenant", "", string(binary.BigEndian.AppendUint32(nil, uint32(i))))
}

// completed makes one record with a response of 256 bytes.
func completed(b *testing.B, st store.Store) store.ID {
	b.Helper()
	r := store.ClaimRequest{ID: numbered(0), Owner: store.NewOwner(), Lease: time.Minute, Policy: store.Policy{Label: "payments", Retention: time.Hour, AtMostOnce: true}}
	if _, err := st.Claim(b.Context(), r); err != nil {
		b.Fatal(err)
	}
	if err := st.Complete(b.Context(), store.CompleteRequest{ID: r.ID, Owner: r.Owner, Payload: make([]byte, 256), Policy: r.Policy}); err != nil {
		b.Fatal(err)
	}
	return r.ID
}

func countAll(b *testing.B, st store.Inspector) {
	b.Helper()
	var longest time.Duration
	for b.Loop() {
		read := 0
		for q := (store.Query{States: store.States(store.StateLapsed, store.StateUnknown), Limit: store.MaxPage}); ; {
			began := time.Now()
			page, err := st.List(b.Context(), q)
			longest = max(longest, time.Since(began))
			if err != nil || len(page.Records) > 0 {
				b.Fatal(page.Records, err)
			}
			read += page.Scanned
			if q.After = page.Next; q.After == "" {
				break
			}
		}
		if read < *benchRecords {
			b.Fatalf("read %d records, want %d", read, *benchRecords)
		}
	}
	b.ReportMetric(b.Elapsed().Seconds()/float64(b.N)*1e6/float64(*benchRecords), "s/10⁶records")
	b.ReportMetric(float64(longest.Milliseconds()), "ms/longest-page")
}
