package suites

import (
	"strconv"
	"strings"
	"time"

	"github.com/reprise-go/reprise/lab/bench/load"
	"github.com/reprise-go/reprise/lab/bench/report"
)

// sustained loads PostgreSQL with new keys at a fixed rate, the floor first and the
// leased store after it: long enough that records expire, are purged and vacuumed while
// the load goes on. The remains of one do not slow down the other.
func (b *bench) sustained(h *host, suite *report.Suite) error {
	retention := max(b.sustain/4, time.Second)
	suite.Rounds, suite.Seconds = 0, b.sustain.Seconds()
	return b.onFreshServers(h, suite, []Variant{
		floor("statements", "postgres", "postgres"),
		Reprise("nethttp", "postgres", "-retention", retention.String(), "-purge 1s"),
	}, (*place).sustain)
}

// sustain loads one variant.
func (p *place) sustain(v started, _ meter) error {
	s := v.server
	before, err := p.tables()
	if err != nil {
		return err
	}
	server, store := s.usage(p.host), p.usage["postgres"](p.host)
	windows := max(int(p.options.sustain/(10*time.Second)), 4)
	o := load.Order{
		Addr: s.addr, Connections: 32, Kind: load.New, Marked: v.Marked, Rate: p.rate,
		Duration: p.options.sustain / time.Duration(windows),
	}
	var requests int64
	var elapsed time.Duration
	var p50s, p99s []float64
	worst := 0.0
	for range windows {
		r, err := p.load.Measure(o, func() {})
		if err != nil {
			return err
		}
		requests, elapsed = requests+r.Requests, elapsed+r.Elapsed
		p50s, p99s = append(p50s, micros(r.P50)), append(p99s, micros(r.P99))
		worst = max(worst, micros(r.P99))
	}
	per := func(d time.Duration) float64 { return quantile([]float64{micros(d) / float64(requests)}, .5) }
	row := report.Row{
		Variant: v.Name, Kind: string(load.New), Connections: o.Connections,
		PerSecond: quantile([]float64{float64(requests) / elapsed.Seconds()}, .5),
		ServerCPU: per(s.usage(p.host).Since(server)), StoreCPU: per(p.usage["postgres"](p.host).Since(store)),
		P50: quantile(p50s, .5), P99: quantile(p99s, .5),
	}
	after, err := p.tables()
	if err != nil {
		return err
	}
	row.Values = after.since(before, float64(requests))
	row.Values["worst_p99_us"] = round3(worst)
	p.suite.Rows = append(p.suite.Rows, row)
	p.print([]report.Row{row})
	return nil
}

// tables are PostgreSQL's statistics of the tables of a variant.
type tables struct{ updates, hot, dead, bytes, rows, vacuums, wal float64 }

func (p *place) tables() (t tables, err error) {
	rows, err := p.postgres.Exec(p.host.ctx, `SELECT coalesce(sum(n_tup_upd), 0), coalesce(sum(n_tup_hot_upd), 0), coalesce(sum(n_dead_tup), 0),
		coalesce(sum(pg_total_relation_size(relid)), 0), coalesce(sum(n_live_tup), 0), coalesce(sum(autovacuum_count), 0),
		(SELECT pg_current_wal_insert_lsn() - '0/0')
		FROM pg_stat_user_tables WHERE relname IN ('reprise_records', 'bench_floor')`)
	if err != nil {
		return t, err
	}
	for i, value := range []*float64{&t.updates, &t.hot, &t.dead, &t.bytes, &t.rows, &t.vacuums, &t.wal} {
		if *value, err = strconv.ParseFloat(strings.TrimSpace(rows[0][i]), 64); err != nil {
			return t, err
		}
	}
	return t, nil
}

// since returns the changes of the tables during a number of requests.
func (t tables) since(before tables, requests float64) map[string]float64 {
	values := map[string]float64{
		"wal_bytes_per_request": round3((t.wal - before.wal) / requests),
		"dead_rows":             t.dead, "live_rows": t.rows, "table_bytes": t.bytes, "autovacuums": t.vacuums - before.vacuums,
	}
	if updates := t.updates - before.updates; updates > 0 {
		values["hot_share"] = round3((t.hot - before.hot) / updates)
	}
	return values
}
