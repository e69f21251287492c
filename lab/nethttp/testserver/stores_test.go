package main

import (
	"crypto/rand"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"testing"

	"github.com/reprise-go/reprise/conformance/adaptertest"

	"github.com/jackc/pgx/v5"

	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/servers"
	"github.com/reprise-go/reprise/servers/program"
)

// database creates an empty database and returns its URL.
func database(t *testing.T) string {
	t.Helper()
	server := servers.SharedPostgres(t).URL()
	name := "testserver_" + strings.ToLower(rand.Text())
	conn, err := pgx.Connect(t.Context(), server)
	labtest.Must(t, err)
	defer conn.Close(t.Context())
	if _, err := conn.Exec(t.Context(), "CREATE DATABASE "+name); err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(server)
	labtest.Must(t, err)
	u.Path = "/" + name
	return u.String()
}

// query returns the rows of a query, each a struct of its columns.
func query[T any](t *testing.T, database, sql string, args ...any) []T {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), database)
	labtest.Must(t, err)
	defer conn.Close(t.Context())
	rows, err := conn.Query(t.Context(), sql, args...)
	labtest.Must(t, err)
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[T])
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return list
}

// effect is a row of reprise_effects.
type effect struct {
	Attempt int
	Owner   []byte
}

func effectsOf(t *testing.T, database, op string) []effect {
	t.Helper()
	return query[effect](t, database, "SELECT attempt, owner FROM reprise_effects WHERE op = $1 AND at <= now()", op)
}

func TestTwoProcessesShareAStore(t *testing.T) {
	t.Parallel()
	for name, flags := range map[string]func(t *testing.T) []string{
		"redis cluster": func(t *testing.T) []string {
			t.Helper()
			nodes := servers.Redis.StartCluster(t).Nodes
			return []string{"-store", "redis", "-redis-url", nodes[0].URL() + "?addr=" + nodes[1].Addr()}
		},
		"redis sentinels": func(t *testing.T) []string {
			t.Helper()
			set := servers.Redis.StartSentinel(t)
			addrs := set.SentinelAddrs()
			return []string{"-store", "redis", "-redis-url", "redis://" + addrs[0] + "?master_name=" + set.MasterName + "&addr=" + addrs[1]}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			args := flags(t)
			first, second := program.Start(t, args...), program.Start(t, args...) // both create their tables in the same empty database
			a, b := listening(t, first), listening(t, second)
			m := message{target: "/t/shared", key: rand.Text()}
			a.do(t, m).want(t, adaptertest.DefaultStatus).wantRun(t, "1")
			b.do(t, m).want(t, adaptertest.DefaultStatus).wantRun(t, "1")
			if executions, _ := b.counts(t, "shared"); executions != 0 {
				t.Errorf("%d executions in the other process, want none", executions)
			}
			for _, p := range []*process{a, b} {
				p.Signal(t, syscall.SIGTERM)
				p.End(t)
			}
		})
	}
}

func TestEffectCommitsWithItsAttemptWherePolicyIsTransactional(t *testing.T) {
	t.Parallel()
	for store, effects := range map[string]int{"memory": 1, "redis": 1, "postgres": 1, "postgres-tx": 0} {
		t.Run(store, func(t *testing.T) {
			t.Parallel()
			db := database(t)
			server := start(t, "-store", store, "-postgres-url", db, "-redis-url", servers.Redis.Shared(t).URL())
			failing := &adaptertest.Program{Effect: true, Status: 500}
			server.do(t, message{target: "/t/x", key: rand.Text(), program: failing}).want(t, 500)
			got := effectsOf(t, db, "x")
			if len(got) != effects || effects > 0 && len(got[0].Owner) != 16 {
				t.Errorf("%+v after a failure, want %d effects with an owner", got, effects)
			}
			server.do(t, message{target: "/t/unkeyed", program: failing}).want(t, 500)
			if got := effectsOf(t, db, "unkeyed"); len(got) != 1 || got[0].Attempt != 0 || got[0].Owner != nil {
				t.Errorf("%+v outside of an attempt, want one effect without attempt and owner", got)
			}
		})
	}
}

func TestPoolBoundsTheTransactionsOfHandlers(t *testing.T) {
	t.Parallel()
	db := database(t)
	args := []string{"-store", "postgres-tx", "-postgres-url", db, "-pool"}
	small := program.Start(t, append(args, "1")...)
	if code := small.Exit(t); code != 1 || !strings.Contains(small.Output(), "the pool has one connection") {
		t.Errorf("exit code %d, want 1 and the reason\n%s", code, small.Output())
	}
	server := start(t, append(args, "3")...)
	slow := message{target: "/t/slow", key: "k", program: &adaptertest.Program{Effect: true, DelayMS: 2000}}
	answered, leave := server.running(t, slow)
	defer leave()
	server.do(t, message{target: "/t/x", key: "l"}).want(t, adaptertest.DefaultStatus) // it asks for none
	server.do(t, message{target: "/t/y", key: "m", program: &adaptertest.Program{Effect: true}}).want(t, http.StatusOK)
	(<-answered).want(t, http.StatusOK)
	if got := effectsOf(t, db, "y"); len(got) != 1 {
		t.Errorf("%+v, want the effect of the one that waited", got)
	}
}

func TestTxTimeoutRollsAnAttemptBack(t *testing.T) {
	t.Parallel()
	db := database(t)
	server := start(t, "-store", "postgres-tx", "-postgres-url", db, "-tx-timeout", "1s")
	m := message{target: "/t/slow", key: "k", program: &adaptertest.Program{Effect: true, DelayMS: 1500, IgnoreCtx: true}}
	if a := server.do(t, m); a.status != http.StatusServiceUnavailable {
		t.Errorf("status %d, want 503\n%s", a.status, a.body)
	}
	if got := effectsOf(t, db, "slow"); len(got) != 0 {
		t.Errorf("%+v, want the effect to be rolled back", got)
	}
}
