// Package suites has the suites of lab/bench, and runs those of tools/peers as well.
package suites

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/reprise-go/reprise/lab/bench/report"
	"github.com/reprise-go/reprise/servers"
)

// Main runs the suites that the command line names. command is how the program is
// started, with %s for its flags. With peers it runs these suites instead of those of the
// project.
func Main(command string, peers ...Comparison) {
	os.Exit(servers.Main{M: program{os.Args[1:], command, peers}}.Run())
}

// program is this program with its arguments. The package servers runs it, or serves the
// role in which it started this program.
type program struct {
	args    []string
	command string
	peers   []Comparison
}

// Run runs the program for [servers.Main].
func (p program) Run() int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	err := p.run(ctx, os.Stdout)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		fmt.Fprintln(os.Stderr, "bench:", err)
		return 1
	}
	return 0
}

// options are the values of the flags.
type options struct {
	suites      []string
	selected    *regexp.Regexp // the variants
	rounds      int
	time        time.Duration // of a measurement
	warmup      time.Duration
	connections []int
	delays      []time.Duration
	keys        []int
	each        int // requests of a measurement of the suite cost
	pool        int
	docs        string
}

// names lists the suites, all of which run unless the flag names some.
func (p program) names() []string {
	if len(p.peers) == 0 {
		return []string{"redis", "postgres", "sqlite", "mysql", "etcd", "pooler", "effect", "adapters", "proxy", "delay", "keys", "cost"}
	}
	var names []string
	for _, c := range p.peers {
		names = append(names, c.Name)
	}
	return names
}

func (p program) parse() (options, error) {
	var o options
	var suites, variants, connections, delays, keys string
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.StringVar(&suites, "suites", strings.Join(p.names(), ","), "a `list` of suites")
	f.StringVar(&variants, "variants", "", "only variants whose name matches the `regexp`")
	f.IntVar(&o.rounds, "rounds", 6, "rounds that count, each in another order")
	f.DurationVar(&o.time, "time", 400*time.Millisecond, "of one measurement in a round")
	f.DurationVar(&o.warmup, "warmup", 120*time.Millisecond, "before each measurement")
	f.StringVar(&connections, "connections", "1,2,4,8,64,256", "a `list`, for the suites that do not fix them")
	f.StringVar(&delays, "delays", "0s,1ms,3ms,8ms,30ms", "a `list` of round trips that the suite delay adds")
	f.StringVar(&keys, "keys", "10000,100000", "a `list` of numbers of keys at which the suite keys measures")
	f.IntVar(&o.each, "each", 50_000, "requests of each measurement of the suite cost, and a fifth of them one after the other")
	f.IntVar(&o.pool, "pool", 70, "connections to PostgreSQL and MariaDB: by default one for each of 64 requests")
	f.StringVar(&o.docs, "docs", "", "the `folder` of documentation whose results the suites are put into, and whose page of figures is written")
	if err := f.Parse(p.args); err != nil {
		return o, err
	}
	o.suites = strings.FieldsFunc(suites, func(r rune) bool { return r == ',' })
	for _, s := range o.suites {
		if !slices.Contains(p.names(), s) {
			return o, fmt.Errorf("no suite %q", s)
		}
	}
	var errs [4]error
	o.selected, errs[0] = regexp.Compile(variants)
	o.connections, errs[1] = list(connections, strconv.Atoi)
	o.keys, errs[2] = list(keys, strconv.Atoi)
	o.delays, errs[3] = list(delays, time.ParseDuration)
	return o, errors.Join(errs[:]...)
}

func list[T any](text string, parse func(string) (T, error)) ([]T, error) {
	var values []T
	for word := range strings.SplitSeq(text, ",") {
		v, err := parse(word)
		if err != nil {
			return nil, err
		}
		values = append(values, v)
	}
	return values, nil
}

// bench runs suites.
type bench struct {
	options

	comparisons []Comparison
	programs    *programs
	out         io.Writer // for tables
	left        []string  // out of the suite that runs
}

func (p program) run(ctx context.Context, out io.Writer) error {
	o, err := p.parse()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "reprise-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	b := &bench{options: o, comparisons: slices.Concat(comparisons(), p.peers), out: out}
	if b.programs, err = newPrograms(ctx, dir); err != nil {
		return err
	}
	file, results := filepath.Join(o.docs, report.File), report.Results{}
	if o.docs != "" {
		if results, err = report.Read(file); err != nil {
			return err
		}
	}
	if len(o.suites) == 0 {
		b.show(results)
	}
	for _, name := range o.suites {
		suite, err := b.suite(ctx, name)
		if err != nil {
			return fmt.Errorf("suite %s: %w", name, err)
		}
		suite.Command = fmt.Sprintf(p.command, strings.Join(p.args, " "))
		results[name] = suite
		if o.docs != "" { // after each: a later one may fail
			if err := results.Write(file); err != nil {
				return err
			}
		}
	}
	if o.docs == "" {
		return nil
	}
	return report.WritePage(o.docs)
}

// show prints results that are there.
func (b *bench) show(results report.Results) {
	for _, name := range slices.Sorted(maps.Keys(results)) {
		s := results[name]
		fmt.Fprintf(b.out, "\n%s: %s on %s at %s\n", name, s.Command, s.Date, s.Commit)
		b.print(s.Rows)
	}
}

// suite runs one suite. One that a missing program stops is empty, and says why.
func (b *bench) suite(ctx context.Context, name string) (report.Suite, error) {
	b.left = nil
	began := time.Now()
	var compared Comparison
	if i := slices.IndexFunc(b.comparisons, func(c Comparison) bool { return c.Name == name }); i >= 0 {
		compared = b.comparisons[i]
	}
	suite := report.Suite{
		Date: began.UTC().Format(time.DateOnly), Commit: commit(ctx, b.programs.root), Machine: thisMachine(ctx, compared.Node),
		Rounds: b.options.rounds, Seconds: b.time.Seconds(),
	}
	fmt.Fprintf(b.out, "\n%s\n", name)
	err := with(ctx, func(h *host) error { //nolint:contextcheck // a server outlives the context that it is started in
		switch name {
		case "keys":
			return b.growth(h, &suite)
		case "cost":
			return b.costs(h, &suite)
		}
		return b.compare(h, compared, &suite)
	})
	var s stopped
	if errors.As(err, &s) && s.missing {
		b.leaveOut(s.reason)
		err = nil
	}
	suite.LeftOut = b.left
	suite.Machine.After = loadAverage()
	fmt.Fprintf(b.out, "  load average before %.1f, after %.1f; it took %.0f s\n", suite.Machine.Load, suite.Machine.After, time.Since(began).Seconds())
	return suite, err
}

// leaveOut notes a suite or variant that is not measured.
func (b *bench) leaveOut(what string) {
	fmt.Fprintln(b.out, "  LEFT OUT:", what)
	b.left = append(b.left, what)
}

// connectionsOf returns the numbers of connections of a suite: its own, unless the flag
// asks for fewer.
func (o options) connectionsOf(c Comparison) []int {
	if len(c.Connections) == 0 || len(o.connections) < len(c.Connections) {
		return o.connections
	}
	return c.Connections
}

// print writes rows for a person to read.
func (b *bench) print(rows []report.Row) {
	for _, r := range rows {
		fmt.Fprintf(b.out, "  %-28s %-7s", r.Variant, r.Kind)
		if r.Connections > 0 {
			fmt.Fprintf(b.out, " %5d conns", r.Connections)
		}
		if r.RoundTrip != "" {
			fmt.Fprintf(b.out, " %6s", r.RoundTrip)
		}
		if r.Keys > 0 {
			fmt.Fprintf(b.out, " %8d keys", r.Keys)
		}
		if r.PerSecond > 0 {
			fmt.Fprintf(b.out, " %8.0f/s  cpu %6.1f + %6.1f µs  p50 %7.0f  p99 %7.0f µs", r.PerSecond, r.ServerCPU, r.StoreCPU, r.P50, r.P99)
		}
		for _, base := range slices.Sorted(maps.Keys(r.Ratios)) {
			fmt.Fprintf(b.out, "  ×%s %.2f (cpu %.2f)", base, r.Ratios[base].PerSecond, r.Ratios[base].CPU)
		}
		for _, name := range slices.Sorted(maps.Keys(r.Values)) {
			fmt.Fprintf(b.out, "  %s %.6g", name, r.Values[name])
		}
		fmt.Fprintln(b.out)
	}
}

// commit names the measured commit, as dirty if files have changed since. Those of docs
// do not count: the results of an earlier run are there.
func commit(ctx context.Context, root string) string {
	git := func(args ...string) (string, error) {
		cmd := exec.CommandContext(ctx, "git", args...)
		cmd.Dir, cmd.Stderr = root, os.Stderr
		out, err := cmd.Output()
		return strings.TrimSpace(string(out)), err
	}
	name, err := git("rev-parse", "--short", "HEAD")
	if err != nil {
		return "unknown"
	}
	if changed, err := git("status", "--porcelain", "--untracked-files=no", "--", ":!docs"); err != nil || changed != "" {
		name += "-dirty"
	}
	return name
}
