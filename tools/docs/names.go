package main

import (
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/reprise-go/reprise/tools/internal/markdown"
)

var (
	makeCall  = regexp.MustCompile(`(?:^|[;&|] *)make((?: +[^\s;&|#]+)*)`)
	goName    = regexp.MustCompile(`^\*?(?:([a-z][a-z0-9]+)\.)?([A-Z]\w*)(?:\.([A-Z]\w*))?(?:[({].*)?$`)
	version   = regexp.MustCompile(`/v\d+\.\d+\.\d+$`)
	module    = regexp.MustCompile(`^[a-z]+(?:\.[a-z]+)*\.(?:com|org|dev|net)/\S+$`)
	localPath = regexp.MustCompile(`^(?:\./)?(\.?[\w-]+(?:/[\w.-]+)+/?|[\w-]+\.(?:md|go|mod|work|sql))$`)
	testRef   = regexp.MustCompile(`^((?:Test|Benchmark|Fuzz|Example)[A-Z]\w*)(…?)$`)
	allUpper  = regexp.MustCompile(`^[A-Z0-9_]+$`)
)

// page resolves the names in a Markdown file.
func (r *report) page(p *markdown.Page) {
	for _, l := range p.Links {
		r.link(p, l)
	}
	for _, s := range p.Code {
		r.span(p, s)
	}
	for _, t := range p.Tables {
		r.table(p, t)
	}
	for _, b := range p.Blocks {
		switch b.Language {
		case "go":
			r.goCode(p.File, b.Line, b.Text, true)
		case "", "sh":
			for i, line := range strings.Split(b.Text, "\n") {
				line, _, _ = strings.Cut(line, "  ") // the rest is a comment
				r.makeCall(p.File, b.Line+i, line)
			}
		}
	}
}

// index holds an index against its folder: it links every page there.
func (r *report) index(p *markdown.Page) {
	for _, other := range r.pages {
		if other == p || path.Dir(other.File) != path.Dir(p.File) {
			continue
		}
		name := path.Base(other.File)
		r.want(slices.ContainsFunc(p.Links, func(l markdown.Span) bool { return l.Text == name }), p.File, 1, "the index lacks %s", name)
	}
}

// table compares a table of a struct's fields with the struct: it names every field, and
// no other.
func (r *report) table(p *markdown.Page, t markdown.Table) {
	pkg, typ, _ := strings.Cut(t.Type.Text, ".")
	fields := r.fields(pkg, typ)
	if fields == nil {
		return // not a struct; goName reports missing names
	}
	listed := map[string]bool{}
	for _, f := range t.Fields {
		listed[f.Text] = true
		r.want(fields[f.Text], p.File, f.Line, "%s has no field %s", t.Type.Text, f.Text)
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		r.want(listed[name], p.File, t.Type.Line, "the table of %s lacks %s", t.Type.Text, name)
	}
}

// fields returns the exported fields of a struct, or nil.
func (r *report) fields(pkg, typ string) map[string]bool {
	for _, g := range r.packages {
		if g.name == pkg && g.fields[typ] != nil {
			return g.fields[typ]
		}
	}
	return nil
}

// link resolves the target of a link.
func (r *report) link(p *markdown.Page, l markdown.Span) {
	if strings.Contains(l.Text, "://") || strings.HasPrefix(l.Text, "mailto:") {
		return
	}
	file, anchor, _ := strings.Cut(l.Text, "#")
	target := p
	if file != "" {
		full := path.Join(path.Dir(p.File), file)
		r.want(r.exists(full), p.File, l.Line, "the link %s leads nowhere", l.Text)
		i := slices.IndexFunc(r.pages, func(q *markdown.Page) bool { return q.File == full })
		if i < 0 {
			return
		}
		target = r.pages[i]
	}
	if anchor != "" {
		r.want(target.Anchors[anchor], p.File, l.Line, "no heading of %s has the anchor #%s", target.File, anchor)
	}
}

func (r *report) exists(file string) bool {
	_, err := os.Stat(filepath.Join(r.dir, filepath.FromSlash(file)))
	return err == nil
}

// span resolves a code span: a make target, a setting, a test, a Go name, or a path.
// Other spans are not names.
func (r *report) span(p *markdown.Page, s markdown.Span) {
	if makeCall.MatchString(s.Text) {
		r.makeCall(p.File, s.Line, s.Text)
		return
	}
	if m := setting.FindString(s.Text); m != "" {
		r.want(r.settings[m], p.File, s.Line, "nothing reads %s", m)
		return
	}
	if m := testRef.FindStringSubmatch(s.Text); m != nil {
		r.want(r.hasTest(m[1], m[2] != ""), p.File, s.Line, "there is no test %s", s.Text)
		return
	}
	if m := goName.FindStringSubmatch(s.Text); m != nil {
		r.goName(p.File, s.Line, m[1], m[2], m[3])
		return
	}
	if module.MatchString(s.Text) {
		r.want(r.isRequired(s.Text), p.File, s.Line, "no go.mod requires %s", s.Text)
		return
	}
	if m := localPath.FindStringSubmatch(s.Text); m != nil {
		r.path(p, s.Line, m[1])
	}
}

func (r *report) hasTest(name string, prefix bool) bool {
	if !prefix {
		return r.tests[name]
	}
	for t := range r.tests {
		if strings.HasPrefix(t, name) {
			return true
		}
	}
	return false
}

// isRequired reports whether a go.mod names the module that an import path belongs to.
func (r *report) isRequired(importPath string) bool {
	for m := range r.modules {
		if m == importPath || strings.HasPrefix(importPath, m+"/") {
			return true
		}
	}
	return false
}

// makeCall resolves the targets of a call of make.
func (r *report) makeCall(file string, line int, text string) {
	for _, m := range makeCall.FindAllStringSubmatch(text, -1) {
		for word := range strings.FieldsSeq(m[1]) {
			word = strings.Trim(word, `"'`)
			if strings.ContainsAny(word, "=<…") || !isTarget.MatchString(word) {
				break // a variable, and a part of its value; or prose
			}
			r.want(r.targets[word], file, line, "make has no target %s", word)
		}
	}
}

var isTarget = regexp.MustCompile(`^[a-z][a-z/_-]*$`)

// path resolves the path of a file, a folder or a package, from the root or from the
// page.
func (r *report) path(p *markdown.Page, line int, name string) {
	first, _, nested := strings.Cut(name, "/")
	switch {
	case foreignPaths[first] || version.MatchString(name):
		return
	case nested && !r.exists(first) && isStandard(name):
		return
	}
	there := r.exists(name) || r.exists(path.Join(path.Dir(p.File), name))
	if !nested {
		there = there || r.hasFile(name)
	}
	r.want(there, p.File, line, "there is no %s", name)
}

// hasFile reports whether a Go file of that name is in some package; a page may name it
// alone after its folder.
func (r *report) hasFile(name string) bool {
	for folder := range r.packages {
		if r.exists(path.Join(folder, name)) {
			return true
		}
	}
	return false
}

func isStandard(pkg string) bool {
	info, err := os.Stat(filepath.Join(build.Default.GOROOT, "src", filepath.FromSlash(pkg)))
	return err == nil && info.IsDir()
}

// goName resolves pkg.Name, pkg.Type.Member, Type.Member or Name.
func (r *report) goName(file string, line int, pkg, name, member string) {
	switch {
	case pkg == "" && member == "" && (allUpper.MatchString(name) || foreignNames[name]):
		return
	case pkg == "" && member == "":
		r.want(r.exported[name], file, line, "no package has the name %s", name)
	case pkg == "":
		if foreignNames[name] {
			return
		}
		r.want(r.hasMember(name, member), file, line, "no type %s has the member %s", name, member)
	default:
		full := pkg + "." + name
		if member != "" {
			full += "." + member
		}
		resolved := r.resolve(pkg, name, member)
		if !resolved && r.isForeign(pkg) {
			return
		}
		r.want(resolved, file, line, "there is no %s", full)
	}
}

// hasMember reports whether a type has a member, or a field of the name has it, such as
// a group of options.
func (r *report) hasMember(name, member string) bool {
	for _, p := range r.packages {
		if p.has(name, member) || slices.ContainsFunc(p.groups[name], func(typ string) bool { return p.has(typ, member) }) {
			return true
		}
	}
	return false
}

// resolve looks a name up in the packages of the project that are called pkg, or in those
// of the standard library if the project has no such package.
func (r *report) resolve(pkg, name, member string) bool {
	known := false
	for _, p := range r.packages {
		if p.name != pkg {
			continue
		}
		known = true
		if p.names[name] && (member == "" || p.has(name, member)) {
			return true
		}
	}
	return !known && r.standard(pkg, name)
}

// isForeign reports whether a name of the package pkg can be one of another project: the
// package is listed, and no package that this project offers has its name.
func (r *report) isForeign(pkg string) bool {
	if !foreignPackages[pkg] {
		return false
	}
	for folder, p := range r.packages {
		if p.name == pkg && len(p.names) > 0 && !strings.Contains(folder+"/", "internal/") {
			return false
		}
	}
	return true
}

// standardFolders returns the folders of the standard library's packages by their last
// element.
var standardFolders = sync.OnceValue(func() map[string][]string {
	folders := map[string][]string{}
	root := filepath.Join(build.Default.GOROOT, "src")
	_ = filepath.WalkDir(root, func(dir string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil || !entry.IsDir():
			return nil // an unreadable file is reported as not found
		case slices.Contains([]string{"cmd", "internal", "testdata", "vendor"}, entry.Name()):
			return filepath.SkipDir
		}
		folders[entry.Name()] = append(folders[entry.Name()], dir)
		return nil
	})
	return folders
})

// standard reports whether a package of the standard library has the name.
func (*report) standard(pkg, name string) bool {
	set := token.NewFileSet()
	for _, folder := range standardFolders()[pkg] {
		files, err := filepath.Glob(filepath.Join(folder, "*.go"))
		if err != nil {
			continue
		}
		for _, f := range files {
			parsed, err := parser.ParseFile(set, f, nil, 0)
			if err == nil && parsed.Scope.Lookup(name) != nil {
				return true
			}
		}
	}
	return false
}

// goCode resolves the names of the project's packages in a piece of Go that begins on a
// line: a file, declarations, or statements.
func (r *report) goCode(file string, line int, text string, mustParse bool) {
	tree, lineOf := parsePiece(text)
	if tree == nil {
		r.want(!mustParse, file, line, "the code block is not Go")
		return
	}
	ast.Inspect(tree, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			if pkg, ok := n.X.(*ast.Ident); ok && n.Sel.IsExported() && r.isPackage(pkg.Name) {
				resolved := r.resolve(pkg.Name, n.Sel.Name, "") || r.isForeign(pkg.Name)
				r.want(resolved, file, line+lineOf(n.Pos()), "there is no %s.%s", pkg.Name, n.Sel.Name)
			}
		case *ast.CompositeLit:
			r.literal(file, line+lineOf(n.Pos()), n)
		}
		return true
	})
}

// literal resolves the fields that a literal of a struct names.
func (r *report) literal(file string, line int, lit *ast.CompositeLit) {
	typ, ok := lit.Type.(*ast.SelectorExpr)
	if !ok {
		return
	}
	pkg, ok := typ.X.(*ast.Ident)
	if !ok || !r.isPackage(pkg.Name) {
		return
	}
	for _, e := range lit.Elts {
		pair, ok := e.(*ast.KeyValueExpr)
		if !ok {
			continue
		}
		if field, ok := pair.Key.(*ast.Ident); ok {
			resolved := r.resolve(pkg.Name, typ.Sel.Name, field.Name) || r.isForeign(pkg.Name)
			r.want(resolved, file, line, "%s.%s has no field %s", pkg.Name, typ.Sel.Name, field.Name)
		}
	}
}

func (r *report) isPackage(name string) bool {
	for _, p := range r.packages {
		if p.name == name {
			return true
		}
	}
	return false
}

// parsePiece parses a file, declarations, or statements, in which … stands for omitted
// code; nil if it is none of them. lineOf counts from 0, the first line of the text.
func parsePiece(text string) (tree *ast.File, lineOf func(token.Pos) int) {
	text = strings.ReplaceAll(text, "…", "")
	for above, form := range []string{text, "package p\n" + text, "package p\nfunc _() {\n" + text + "\n}"} {
		set := token.NewFileSet()
		if f, err := parser.ParseFile(set, "", form, parser.SkipObjectResolution); err == nil {
			return f, func(p token.Pos) int { return set.Position(p).Line - 1 - above }
		}
	}
	return nil, nil
}
