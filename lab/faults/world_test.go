package faults_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/servers"
)

// world is some servers over one store, their clients, and the faults around them.
type world struct {
	name     string
	preset   preset
	nodes    []*node
	load     *load
	lanes    []lane
	replaces bool           // a replica or a standby takes over
	lossy    bool           // losses on a failover are counted, and are no violations
	store    *servers.Proxy // between the servers and the store; nil: there is none
	witness  func() string  // URL of the database of the effects, and of the records if they are there

	dir     string
	history string
	soak    time.Duration // for how long to break it; 0: once through its lanes

	mu       sync.Mutex
	faults   map[string]int
	armed    map[<-chan struct{}]string // rules of proxies that were not triggered yet
	promoted []int64                    // when a replica or standby had become the primary
}

// lane is a sequence of faults. The lanes of a world run side by side.
type lane struct {
	name   string
	faults int // in a run that is no soak
	next   func(*decision)
}

// decision is one step of a lane, drawn from the seed.
type decision struct {
	testing.TB
	*world

	kind, a, b uint64
	gap        time.Duration
}

// count counts faults that happened.
func (w *world) count(kind string, n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.faults[kind] += n
}

// promotion notes that a replica or standby has become the primary.
func (w *world) promotion() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.promoted = append(w.promoted, time.Now().UnixNano())
}

// expect counts a fault as soon as a proxy did it, and waits for that for a while.
func (w *world) expect(kind string, done <-chan struct{}) {
	timer := time.NewTimer(2 * time.Second)
	defer timer.Stop()
	select {
	case <-done:
		w.count(kind, 1)
	case <-timer.C:
		w.mu.Lock()
		defer w.mu.Unlock()
		w.armed[done] = kind
	}
}

// setting is the values of the flags of a world's servers.
type setting struct {
	name    string
	preset  preset
	mistake string   // that the servers make; empty: none
	store   []string // flags, besides those of every world
	db      string   // URL of the database, as the servers reach it
}

// database makes a database on a server, and returns its name.
func database(tb testing.TB, s *servers.PostgresServer) string {
	tb.Helper()
	name := strings.ReplaceAll(strings.Trim(labtest.RedisPrefix(), ":"), ":", "_")
	_, err := s.Exec(tb.Context(), "CREATE DATABASE "+name)
	labtest.Must(tb, err)
	return name
}

// at returns the URL of a database.
func at(server, database string) string {
	u, err := url.Parse(server)
	if err != nil {
		panic("faults: not a URL")
	}
	u.Path = "/" + database
	return u.String()
}

// lease is short, so that attempts of dead processes are taken over soon, and longer than
// a busy machine pauses.
const lease = 2 * time.Second

// newWorld starts the servers.
func newWorld(tb testing.TB, s setting) *world {
	tb.Helper()
	dir, err := os.MkdirTemp("", "reprise-world-") //nolint:usetesting // a failed run leaves its logs
	labtest.Must(tb, err)
	tb.Cleanup(func() {
		if !tb.Failed() {
			_ = os.RemoveAll(dir)
		}
	})
	w := &world{
		name: s.name, preset: s.preset, dir: dir, history: filepath.Join(dir, "history"), soak: labtest.Soak(tb),
		faults: make(map[string]int), armed: make(map[<-chan struct{}]string),
	}
	preset := "recoverable"
	if s.preset == atMostOnce {
		preset = "at-most-once"
	}
	args := append([]string{"-postgres-url", s.db, "-preset", preset, "-lease", lease.String(), "-required", "-wait", "200ms", "-pool", "6"}, s.store...)
	env := []string{"REPRISE_FAULTS_HISTORY=" + w.history, "REPRISE_FAULTS_MISTAKE=" + s.mistake}
	for i := range 2 {
		w.nodes = append(w.nodes, startNode(tb, dir, fmt.Sprintf("%s-%d", s.name, i), env, args))
	}
	w.load = newLoad(tb, s.name, w.nodes)
	return w
}

// outcome is the result of a world.
type outcome struct {
	name                           string
	preset                         preset
	replaces                       bool // its primary
	took                           time.Duration
	operations, requests, attempts int64
	replays, executions, takeovers int64
	processes, lost, promoted      int
	unconfirmed                    int // operations replayed before a replica confirmed the response, which was lost
	faults                         map[string]int
	violations                     []violation
}

// String says it in a line.
func (o *outcome) String() string {
	n := 0
	for _, times := range o.faults {
		n += times
	}
	return fmt.Sprintf("%s: %d faults in %v; %d operations, %d requests in %d attempts; %d executions, %d takeovers, %d replays; %d lost and %d replayed unconfirmed on %d failovers; %d violations; %v",
		o.name, n, o.took.Round(time.Second), o.operations, o.requests, o.attempts, o.executions, o.takeovers, o.replays, o.lost, o.unconfirmed, o.promoted, len(o.violations), o.faults)
}

// run breaks a world under load, repairs it, and checks the operations.
func (w *world) run(tb testing.TB, seed uint64) *outcome {
	tb.Helper()
	began := time.Now()
	soak := w.soak
	ctx, stop := context.WithCancel(tb.Context())
	defer stop()
	var working, breaking sync.WaitGroup
	working.Go(func() { w.load.work(ctx) })
	for _, l := range w.lanes {
		breaking.Go(func() {
			r := random(seed, w.name+"/"+l.name)
			limit, pause := began.Add(soak), 10*time.Millisecond
			if soak == 0 {
				limit, pause = began.Add(ciLimit), time.Millisecond
			}
			for n := 0; (soak > 0 || n < l.faults) && time.Now().Before(limit) && !tb.Failed(); n++ {
				d := &decision{TB: tb, world: w, kind: r.Uint64(), a: r.Uint64(), b: r.Uint64(), gap: time.Duration(r.IntN(60)) * pause}
				l.next(d)
				sleep(ctx, d.gap)
			}
		})
	}
	breaking.Wait()
	for _, n := range w.nodes { // everything is whole again
		n.link.Heal(tb)
	}
	if w.store != nil {
		w.store.Heal(tb)
	}
	stop()
	working.Wait()
	w.load.audit()
	o := w.judge(tb)
	o.took = time.Since(began)
	tb.Log(o)
	return o
}

// ciLimit bounds the faults of a run that is no soak, for machines that are too slow for
// all of them.
const ciLimit = 90 * time.Second

// judge collects the evidence of each operation, and checks it.
func (w *world) judge(tb testing.TB) *outcome {
	tb.Helper()
	for done, kind := range w.armed {
		select {
		case <-done:
			w.faults[kind]++
		default:
		}
	}
	o := &outcome{
		name: w.name, preset: w.preset, replaces: w.replaces, operations: w.load.next.Load(), requests: w.load.requests.Load(), attempts: w.load.attempts.Load(),
		replays: w.load.replays.Load(), faults: w.faults, promoted: len(w.promoted),
	}
	for _, n := range w.nodes {
		o.processes += n.start
	}
	operations := w.operations(tb, o)
	for _, name := range slices.Sorted(maps.Keys(operations)) {
		op := operations[name]
		o.executions += int64(len(op.effects))
		found := check(op, w.preset)
		for _, h := range op.holders {
			if h.attempt > 1 {
				o.takeovers++
			}
		}
		if w.lossy && len(found) > 0 && !slices.ContainsFunc(found, func(v violation) bool { return v.rule == ruleProgress }) {
			o.lost++
			continue
		}
		if len(w.promoted) > 0 && len(found) > 0 && len(check(op.confirmed(), w.preset)) == 0 {
			o.unconfirmed++
			if o.unconfirmed <= 10 {
				tb.Log(op.history(w.promoted))
			}
			continue
		}
		if len(found) > 0 && len(o.violations) < 10 {
			tb.Log(op.history(w.promoted))
		}
		o.violations = append(o.violations, found...)
	}
	return o
}

// event is a line of the history that the servers write. See lab/serve/points_faults.go.
type event struct {
	Kind, ID, Op, Owner string
	Attempt             int
	Fence               uint64
	Asked, At, Until    int64
}

// operations merges the clients' responses, the servers' histories and the database.
func (w *world) operations(tb testing.TB, o *outcome) map[string]*operation {
	tb.Helper()
	byOp := make(map[string]*operation)
	for op, calls := range w.load.calls {
		byOp[op] = &operation{op: op, calls: calls, holders: make(map[string]*holder)}
	}
	byID := make(map[string]map[string]*holder)
	opOf := make(map[string]string) // of an owner
	file, err := os.Open(w.history)
	labtest.Must(tb, err)
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		// A process that is killed while it writes may leave the beginning of a line, to which
		// the next process appends. What it was about to say had no effect yet.
		line := lines.Bytes()
		line = line[max(0, bytes.LastIndex(line, []byte(`{"kind"`))):]
		var e event
		if err := json.Unmarshal(line, &e); err != nil {
			tb.Fatalf("history: %v: %s", err, line)
		}
		if e.Kind == "run" {
			opOf[e.Owner] = e.Op
			continue
		}
		if byID[e.ID] == nil {
			byID[e.ID] = make(map[string]*holder)
		}
		h := byID[e.ID][e.Owner]
		if h == nil && e.Kind != "claim" {
			continue // the release of a claim that was not granted, or whose response was lost
		}
		switch e.Kind {
		case "claim":
			if h == nil {
				h = &holder{owner: e.Owner, attempt: e.Attempt, fence: e.Fence, asked: e.Asked, from: e.At}
				byID[e.ID][e.Owner] = h
			}
			h.until = max(h.until, e.Until)
		case "renew":
			h.until = max(h.until, e.Until)
		case "end":
			if h.end == 0 {
				h.end = e.At
			}
		case "completed":
			h.completed = true
		}
	}

	pool, err := pgxpool.New(tb.Context(), w.witness())
	labtest.Must(tb, err)
	defer pool.Close()
	rows(tb, pool, "SELECT op, attempt, encode(owner, 'hex') FROM reprise_effects", func(scan func(...any) error) error {
		var op string
		var e effect
		if err := scan(&op, &e.attempt, &e.owner); err != nil {
			return err
		}
		if byOp[op] == nil {
			return fmt.Errorf("an effect of %s, which nobody asked for", op)
		}
		byOp[op].effects = append(byOp[op].effects, e)
		opOf[e.owner] = op
		return nil
	})
	for _, holders := range byID {
		for owner := range holders {
			if op := byOp[opOf[owner]]; op != nil {
				op.holders = holders
			}
		}
	}
	var there bool
	labtest.Must(tb, pool.QueryRow(tb.Context(), "SELECT to_regclass('reprise_records') IS NOT NULL").Scan(&there))
	if there {
		rows(tb, pool, "SELECT encode(owner, 'hex') FROM reprise_records WHERE state = 2", func(scan func(...any) error) error {
			var owner string
			if err := scan(&owner); err != nil {
				return err
			}
			if op := byOp[opOf[owner]]; op != nil {
				op.record = owner
			}
			return nil
		})
	}
	return byOp
}

func rows(tb testing.TB, pool *pgxpool.Pool, sql string, read func(scan func(...any) error) error) {
	tb.Helper()
	list, err := pool.Query(tb.Context(), sql)
	labtest.Must(tb, err)
	defer list.Close()
	for list.Next() {
		labtest.Must(tb, read(list.Scan))
	}
	labtest.Must(tb, list.Err())
}
