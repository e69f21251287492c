package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// run is the mutation of one package.
type run struct {
	root, pkg, dir string
	files          *regexp.Regexp
	only, skip     *regexp.Regexp // of tests
	lines          *regexp.Regexp
	programs       []program
	workers        int
	longest        time.Duration // of a test

	with  []string // other packages whose tests run, too
	sites []*site
	tests []test
	left  []string // tests that the switches alone make fail
}

// program is the compiled tests of a package, with all breaks.
type program struct {
	path, folder string
	doubted      bool // its tests may fail for reasons of their own, as those on servers do
}

// test is a test of the package.
type test struct {
	program
	name string
	took time.Duration
	seen []byte // by the number of a site
}

// memory bounds the address space of a test, in KiB: a loop that does not end may
// allocate.
const memory = 8 << 20

func (r *run) do() error {
	if err := r.build(); err != nil {
		return err
	}
	if err := r.explore(); err != nil {
		return err
	}
	sites := make(chan *site)
	var wg sync.WaitGroup
	for range r.workers {
		wg.Go(func() {
			for s := range sites {
				r.judge(s)
				if s.Status == lived || s.Status == uncovered {
					fmt.Fprintln(os.Stderr, s)
				}
			}
		})
	}
	for i, s := range r.sites {
		sites <- s
		if i%50 == 49 {
			fmt.Fprintf(os.Stderr, "%s %d of %d\n", time.Now().Format(time.TimeOnly), i+1, len(r.sites))
		}
	}
	close(sites)
	wg.Wait()
	return nil
}

// listed is what go list says of a package.
type listed struct {
	ImportPath, Name, Dir, Export string
	GoFiles                       []string
	DepOnly                       bool
}

// build compiles the tests of the package with all breaks.
func (r *run) build() error {
	list := exec.CommandContext(context.Background(), "go", "list", "-export", "-deps", "-json=ImportPath,Name,Dir,Export,GoFiles,DepOnly", r.pkg)
	list.Dir, list.Stderr = r.root, os.Stderr
	output, err := list.Output()
	if err != nil {
		return fmt.Errorf("go list: %w", err)
	}
	exports, target := map[string]string{}, listed{}
	for d := json.NewDecoder(bytes.NewReader(output)); ; {
		var p listed
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return err
		}
		exports[p.ImportPath] = p.Export
		if !p.DepOnly {
			target = p
		}
	}
	overlay, err := r.breakFiles(&target, exports)
	if err != nil {
		return err
	}
	text, err := json.Marshal(map[string]any{"Replace": overlay})
	if err != nil {
		return err
	}
	config := filepath.Join(r.dir, "overlay.json")
	if err := os.WriteFile(config, text, 0o600); err != nil {
		return err
	}
	for i, pkg := range append([]string{r.pkg}, r.with...) {
		where := exec.CommandContext(context.Background(), "go", "list", "-f={{.Dir}}", pkg)
		where.Dir = r.root
		folder, err := where.Output()
		if err != nil {
			return fmt.Errorf("go list %s: %w", pkg, err)
		}
		p := program{filepath.Join(r.dir, "tests"+strconv.Itoa(i)), strings.TrimSpace(string(folder)), i > 0}
		compile := exec.CommandContext(context.Background(), "go", "test", "-c", "-vet=off", "-overlay", config, "-o", p.path, pkg)
		compile.Dir = r.root
		if output, err := compile.CombinedOutput(); err != nil {
			return fmt.Errorf("%w:\n%s", err, output)
		}
		r.programs = append(r.programs, p)
	}
	return nil
}

// breakFiles writes the files of the package with their switches.
func (r *run) breakFiles(p *listed, exports map[string]string) (overlay map[string]string, err error) {
	fset := token.NewFileSet()
	var files []*ast.File
	for _, name := range p.GoFiles {
		f, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{}, Defs: map[*ast.Ident]types.Object{}}
	config := types.Config{Importer: importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })}
	if _, err := config.Check(p.ImportPath, fset, files, info); err != nil {
		return nil, err
	}
	overlay, next := map[string]string{}, 0
	for i, f := range files {
		name := p.GoFiles[i]
		if !r.files.MatchString(name) {
			continue
		}
		path := filepath.Join(p.Dir, name)
		source, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		b := &breaker{fset: fset, info: info, file: f, name: name, source: source, next: &next, wanted: r.wanted}
		ast.Walk(b, f)
		r.sites = append(r.sites, b.sites...)
		overlay[path] = filepath.Join(r.dir, name)
		if err := os.WriteFile(overlay[path], b.broken(), 0o600); err != nil {
			return nil, err
		}
	}
	path := filepath.Join(p.Dir, "zz_mutate.go")
	overlay[path] = filepath.Join(r.dir, "zz_mutate.go")
	return overlay, os.WriteFile(overlay[path], fmt.Appendf(nil, switches, p.Name, next), 0o600)
}

func (r *run) wanted(file string, line int) bool {
	return r.lines.MatchString(file + ":" + strconv.Itoa(line))
}

// explore runs each test by itself, with all switches off, and notes where it comes by.
func (r *run) explore() error {
	for _, p := range r.programs {
		output, err := p.command(context.Background(), nil, "-test.list=.").Output()
		if err != nil {
			return fmt.Errorf("listing the tests: %w", err)
		}
		for name := range strings.FieldsSeq(string(output)) {
			if !strings.HasPrefix(name, "Benchmark") && r.only.MatchString(name) && !r.skip.MatchString(name) {
				r.tests = append(r.tests, test{program: p, name: name})
			}
		}
	}
	each := make(chan int)
	var wg sync.WaitGroup
	var failed error
	var mu sync.Mutex
	for range r.workers {
		wg.Go(func() {
			for i := range each {
				passed, err := r.exploreTest(&r.tests[i], i)
				mu.Lock()
				if !passed {
					r.left = append(r.left, r.tests[i].name)
				}
				failed = cmp.Or(failed, err)
				mu.Unlock()
			}
		})
	}
	for i := range r.tests {
		each <- i
	}
	close(each)
	wg.Wait()
	r.tests = slices.DeleteFunc(r.tests, func(t test) bool { return slices.Contains(r.left, t.name) })
	slices.SortFunc(r.tests, func(a, b test) int { return cmp.Compare(a.took, b.took) })
	fmt.Fprintf(os.Stderr, "%s %d places, %d tests, left out: %v\n", time.Now().Format(time.TimeOnly), len(r.sites), len(r.tests), r.left)
	return failed
}

func (r *run) exploreTest(t *test, n int) (passed bool, err error) {
	seen := filepath.Join(r.dir, strconv.Itoa(n)+".seen")
	if err := os.WriteFile(seen, make([]byte, len(r.sites)+1), 0o600); err != nil {
		return false, err
	}
	start := time.Now()
	passed = t.command(context.Background(), []string{"MUTATE_SEEN=" + seen}, "-test.run=^"+t.name+"$", "-test.timeout="+r.longest.String()).Run() == nil
	t.took = time.Since(start)
	t.seen, err = os.ReadFile(seen)
	return passed, err
}

func (p program) command(ctx context.Context, env []string, args ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, "sh", append([]string{"-c", `ulimit -v "$1" && shift && exec "$@"`, "sh", strconv.Itoa(memory), p.path}, args...)...)
	c.Dir, c.Env = p.folder, append(os.Environ(), env...)
	c.WaitDelay = time.Second
	return c
}

// judge runs the tests that come by at a site with its break: those of the package first,
// and the short ones before the long ones.
func (r *run) judge(s *site) {
	for _, p := range r.programs {
		var tests []test
		for _, t := range r.tests {
			if t.program == p && t.seen[s.ID] != 0 {
				tests = append(tests, t)
			}
		}
		for _, group := range groups(tests) {
			if s.Status, s.Test = p.judge(s.ID, group); s.Status != lived {
				return
			}
		}
	}
}

// Each group of tests runs in one process: at first a few, then what takes this long.
const (
	fewTests  = 8
	groupTime = 10 * time.Second
)

// groups parts tests, the shortest first. The first failure ends a group, and a loop that
// does not end costs some times as long as its group.
func groups(tests []test) (parts [][]test) {
	few := min(fewTests, len(tests))
	if few > 0 {
		parts = append(parts, tests[:few])
	}
	var took time.Duration
	from := few
	for i := few; i < len(tests); i++ {
		if took += tests[i].took; took >= groupTime || i == len(tests)-1 {
			parts = append(parts, tests[from:i+1])
			from, took = i+1, 0
		}
	}
	return parts
}

// judge runs tests with a break on. Where a test may fail for reasons of its own, it has
// to fail again alone.
func (p program) judge(id int, tests []test) (result status, noticed string) {
	for len(tests) > 0 {
		if result, noticed = p.try(id, tests); result != killed || !p.doubted {
			return result, noticed
		}
		top, _, _ := strings.Cut(noticed, "/")
		is := func(t test) bool { return t.name == top }
		n := slices.IndexFunc(tests, is)
		if n < 0 { // the process ended
			return result, noticed
		}
		if again, _ := p.try(id, tests[n:n+1]); again != lived {
			return again, noticed
		}
		tests = slices.DeleteFunc(slices.Clone(tests), is)
	}
	return lived, ""
}

// try runs tests with a break on.
func (p program) try(id int, tests []test) (result status, noticed string) {
	limit := 8 * time.Second
	names := make([]string, len(tests))
	for i, t := range tests {
		names[i] = t.name
		limit += 4 * t.took
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	output, err := p.command(ctx, []string{"MUTATE_ID=" + strconv.Itoa(id)}, "-test.run=^("+strings.Join(names, "|")+")$", "-test.failfast", "-test.timeout="+limit.String()).CombinedOutput()
	switch {
	case ctx.Err() != nil || bytes.Contains(output, []byte("panic: test timed out")):
		return timedOut, ""
	case err == nil:
		return lived, ""
	}
	if match := failure.FindSubmatch(output); match != nil {
		noticed = string(match[1])
	}
	return killed, noticed
}

var failure = regexp.MustCompile(`--- FAIL: (\S+)`)

// print writes a table of the places that no test noticed, and the counts.
func (r *run) print(w io.Writer) {
	counts := map[status]int{}
	for _, s := range r.sites {
		counts[s.Status]++
		if s.Status == lived || s.Status == uncovered {
			fmt.Fprintln(w, s)
		}
	}
	fmt.Fprintf(w, "%s: %d mutants, %d killed, %d timed out, %d lived, %d not covered\n",
		r.pkg, len(r.sites), counts[killed], counts[timedOut], counts[lived], counts[uncovered])
}
