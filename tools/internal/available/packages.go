package available

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// looking is a search for the packages that can be built without what is refused.
type looking struct {
	dir, file, out string // the project, its go.work, and where to write another one
	workspace      workspace
	refused        map[string]Refusal // by path@version
}

// state is what became of a package.
type state struct {
	whole bool // it and its tests can be built
	code  bool // it has more than tests
}

// load returns the packages of the workspace under the build tags, by their folder. The
// graph has modules that no go.mod lists; those that are refused are added to refused on
// the way.
func (l *looking) load(ctx context.Context, tags ...string) (map[string]state, error) {
	args := []string{"list", "-e", "-test", "-tags=" + strings.Join(tags, ","), "-json=ImportPath,ForTest,GoFiles,CgoFiles,Error,DepsErrors"}
	for _, folder := range l.workspace.modules {
		args = append(args, Root+folder+"/...")
	}
	for {
		if err := l.writeWorkspace(); err != nil {
			return nil, err
		}
		out, failed := run(ctx, l.dir, filepath.Join(l.out, "go.work"), args...)
		if failed != nil {
			if l.note(failed.Error()) {
				continue
			}
			return nil, failed
		}
		packages, problems, err := l.parse(out)
		if err != nil || !l.note(strings.Join(problems, "\n")) {
			return packages, err
		}
	}
}

// listed is an object in the output of go list.
type listed struct {
	ImportPath, ForTest string
	GoFiles, CgoFiles   []string
	Error               *problem
	DepsErrors          []problem
}

type problem struct{ Err string }

// tested returns the import path of the package that an object is about: go list adds a
// test binary "path.test", and what is compiled anew for it as "path [path.test]".
func (p *listed) tested() string {
	if p.ForTest != "" {
		return p.ForTest
	}
	return strings.TrimSuffix(p.ImportPath, ".test")
}

// parse reads the output of go list: the packages, and everything that is wrong with
// them.
func (l *looking) parse(out []byte) (packages map[string]state, problems []string, err error) {
	packages = make(map[string]state)
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return packages, problems, nil
		} else if err != nil {
			return nil, nil, fmt.Errorf("output of go list: %w", err)
		}
		folder, ours := strings.CutPrefix(p.tested(), Root)
		if !ours {
			continue
		}
		if p.Error != nil {
			p.DepsErrors = append(p.DepsErrors, *p.Error)
		}
		known, seen := packages[folder]
		known.whole = known.whole || !seen
		for _, e := range p.DepsErrors {
			problems = append(problems, e.Err)
			known.whole = known.whole && !l.blames(e.Err)
		}
		if p.ImportPath == Root+folder {
			known.code = len(p.GoFiles)+len(p.CgoFiles) > 0
		}
		packages[folder] = known
	}
}

// blames reports whether an error is about a refused module. Any other is a mistake in
// the project, which the build has to show.
func (l *looking) blames(text string) bool {
	for _, r := range l.refused {
		if strings.Contains(text, r.Module) {
			return true
		}
	}
	return false
}

// unread is how the go command says that the proxy did not serve a file of a module.
var unread = regexp.MustCompile(`(\S+)@(v[^\s:]+): reading \S+: [^\n]*(?:\n\t[^\n]*)*`)

// note adds the modules that a text of the go command says were refused, and reports
// whether there was a new one.
func (l *looking) note(text string) bool {
	found := false
	for _, m := range unread.FindAllStringSubmatch(text, -1) {
		id := m[1] + "@" + m[2]
		if _, known := l.refused[id]; !known {
			l.refused[id] = Refusal{Module: m[1], Version: m[2], Answer: answer(m[0])}
			found = true
		}
	}
	return found
}

// longestAnswer cuts the web pages that some proxies answer with.
const longestAnswer = 200

// answer shortens an error of the go command to what the proxy said.
func answer(text string) string {
	if _, after, found := strings.Cut(text, ": reading "); found {
		text = after
	}
	text = strings.Join(strings.Fields(strings.ReplaceAll(text, "server response:", "")), " ")
	if len(text) > longestAnswer {
		text = text[:longestAnswer] + "…"
	}
	return text
}

// writeWorkspace writes a go.work like that of the project, in which an empty module
// stands for every refused one.
func (l *looking) writeWorkspace() error {
	var b strings.Builder
	fmt.Fprintf(&b, "go %s\n", l.workspace.goVersion)
	for _, folder := range l.workspace.modules {
		fmt.Fprintf(&b, "use %q\n", filepath.Join(l.dir, filepath.FromSlash(folder)))
	}
	stubs := make(map[string]string)
	var ids []string
	for id := range l.refused {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for _, id := range ids {
		r := l.refused[id]
		stub := filepath.Join(l.out, "refused", filepath.FromSlash(escape(id)))
		fmt.Fprintf(&b, "replace %s %s => %q\n", r.Module, r.Version, stub)
		stubs[id] = stub
		if err := write(filepath.Join(stub, "go.mod"), "module "+r.Module+"\n\ngo 1.17\n"); err != nil {
			return err
		}
	}
	for _, module := range slices.Sorted(maps.Keys(l.workspace.replaced)) {
		by := l.workspace.replaced[module]
		if stub, refused := stubs[by]; refused {
			fmt.Fprintf(&b, "replace %s => %q\n", module, stub)
		} else {
			fmt.Fprintf(&b, "replace %s => %s\n", module, strings.Replace(by, "@", " ", 1))
		}
	}
	if err := write(filepath.Join(l.out, "go.work"), b.String()); err != nil {
		return err
	}
	sums, err := os.ReadFile(l.file + ".sum")
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return write(filepath.Join(l.out, "go.work.sum"), string(sums))
}

// notAlone returns the modules whose graph does not load outside the workspace.
func (l *looking) notAlone(ctx context.Context, required map[string][]string) ([]string, error) {
	var folders []string
	for folder, list := range required {
		refused := slices.ContainsFunc(list, func(id string) bool { _, r := l.refused[id]; return r })
		if !refused {
			_, err := run(ctx, filepath.Join(l.dir, filepath.FromSlash(folder)), "off", "mod", "graph")
			switch refused = err != nil && unread.MatchString(err.Error()); {
			case refused:
				l.note(err.Error())
			case err != nil:
				return nil, err
			}
		}
		if refused {
			folders = append(folders, folder)
		}
	}
	slices.Sort(folders)
	return folders, nil
}

// write writes a file and the folders on its way, unless it is there already: another
// make may be reading it.
func write(file, text string) error {
	if old, err := os.ReadFile(file); err == nil && string(old) == text {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, []byte(text), 0o644)
}
