package main

import (
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
)

var (
	goName    = regexp.MustCompile(`^\*?(?:([a-z][a-z0-9]+)\.)?([A-Z]\w*)(?:\.([A-Z]\w*))?(?:[({].*|…)?$`)
	variable  = regexp.MustCompile(`REPRISE_[A-Z_]+[A-Z]`)
	oneFlag   = regexp.MustCompile(`(?:^| )--?([a-z][a-z0-9-]+)`)
	ours      = regexp.MustCompile(`^(?:make |reprise |go run \./|-|\.ci/)`)
	target    = regexp.MustCompile(`^make +([a-z][a-z/]*)$`)
	localPath = regexp.MustCompile(`^(?:\./)?(\.?[\w-]+(?:/[\w.-]+)+/?|[\w-]+\.(?:md|go|mod|work|sql))$`)
	release   = regexp.MustCompile(`/v\d+\.\d+\.\d+$`)
	docLink   = regexp.MustCompile(`\[\*?(?:([a-z]\w*)\.)?([A-Z]\w*)(?:\.([A-Z]\w*))?\](?:$|[^(\[:])`)
	qualified = regexp.MustCompile(`(?:^|[\s(])(reprise\w*|job|protocol|memstore|storetest|adaptertest|faultstore)\.([A-Z]\w*)(?:\.([A-Z]\w*))?`)
)

// want reports a name that is not resolved.
func (p *project) want(resolved bool, format string, args ...any) {
	if !resolved {
		p.bad = append(p.bad, p.at+": "+fmt.Sprintf(format, args...))
	}
}

// span resolves the names in a code span of a page.
func (p *project) span(file, text string) {
	for _, name := range variable.FindAllString(text, -1) {
		p.want(p.words[name], "nothing reads %s", name)
	}
	if m := target.FindStringSubmatch(text); m != nil {
		p.want(p.targets[m[1]], "make has no target %s", m[1])
		return
	}
	if ours.MatchString(text) {
		for _, m := range oneFlag.FindAllStringSubmatch(text, -1) {
			p.want(p.words[m[1]] || slices.Contains(foreign, m[1]), "no program has the flag %s", m[1])
		}
		return
	}
	if m := goName.FindStringSubmatch(text); m != nil {
		p.name(m[1], m[2], m[3], strings.HasSuffix(text, "…"))
	} else if m := localPath.FindStringSubmatch(text); m != nil {
		p.path(file, m[1])
	}
}

// comment resolves the doc links of a line of a comment, and names with our packages.
func (p *project) comment(line string) {
	for _, m := range slices.Concat(docLink.FindAllStringSubmatch(line, -1), qualified.FindAllStringSubmatch(line, -1)) {
		if !strings.HasPrefix(line, "\t") && (m[1] == "" || p.packages[m[1]] != nil) {
			p.name(m[1], m[2], m[3], false)
		}
	}
}

// name resolves pkg.Name.Member, of which two may be empty. A package of ours has to
// declare the name, and code of ours to have the member; of others, code has to use it.
func (p *project) name(pkg, name, member string, prefix bool) {
	full := strings.Trim(pkg+"."+name+"."+member, ".")
	exported, known := p.packages[pkg]
	switch {
	case slices.Contains(foreign, name) || slices.Contains(foreign, pkg) || strings.ToUpper(name) == name && pkg == "":
	case pkg == "":
		p.want(p.words[name] || prefix && p.begins(name), "no code has the name %s", name)
	case known:
		p.want(exported[name], "there is no %s", full)
	default:
		p.want(p.imported[pkg] || isStandard(pkg), "no code imports a package for %s", full)
	}
	if member != "" && (pkg == "" || known) && !slices.Contains(foreign, member) {
		p.want(p.words[member], "no code has the name %s", member)
	}
}

func (p *project) begins(prefix string) bool {
	for w := range p.words {
		if strings.HasPrefix(w, prefix) {
			return true
		}
	}
	return false
}

// path resolves the path of a file, a folder or a package, from the root or from the
// page, which may also name a file alone, after its folder.
func (p *project) path(page, name string) {
	first, _, nested := strings.Cut(name, "/")
	if slices.Contains(foreign, first) || release.MatchString(name) || isStandard(name) {
		return
	}
	p.want(p.exists(name) || p.exists(path.Join(path.Dir(page), name)) || !nested && p.words[name], "there is no %s", name)
}

func (p *project) exists(file string) bool {
	_, err := os.Stat(filepath.Join(p.dir, filepath.FromSlash(file)))
	return err == nil
}

// goroot returns the folder of Go, which build.Default does not know with -trimpath.
var goroot = sync.OnceValue(func() string {
	out, _ := exec.Command("go", "env", "GOROOT").Output()
	return strings.TrimSpace(string(out))
})

func isStandard(pkg string) bool {
	found, _ := filepath.Glob(filepath.Join(goroot(), "src", filepath.FromSlash(pkg)))
	deeper, _ := filepath.Glob(filepath.Join(goroot(), "src", "*", filepath.FromSlash(pkg)))
	return len(found)+len(deeper) > 0
}

// foreign are names, packages, flags and first folders of paths that other projects have
// and no code of ours uses, or that targets make.
var foreign = strings.Fields(`
	.cache application text middleware
	asynq db dialect queries tx QueryExecModeExec
	bump-revision max-request-bytes auto-compaction-retention force-new-cluster sysdate-is-now
	BodyLimit CallInfo ChangeMessageVisibility ErrTaskIDConflict GetBody GracefulStop HandleContext IsFailure KeyHeaderValidate Locker
	MaxExtension MessageId OnConnect ResponseHeaderTimeout RetryDelayFunc RetryPolicy SetMaxOpenConns`)
