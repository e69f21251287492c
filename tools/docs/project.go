package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/reprise-go/reprise/tools/internal/markdown"
)

// project is the names that documents may use.
type project struct {
	dir      string
	pages    []*markdown.Page
	comments []comment             // every comment in a Go file
	packages map[string]*goPackage // by their folder
	exported map[string]bool       // every exported name and member, of any package
	tests    map[string]bool       // tests, benchmarks, fuzz targets and examples
	targets  map[string]bool       // of make
	settings map[string]bool       // environment variables
	modules  map[string]bool       // that a go.mod names
}

// goPackage is the names of a package.
type goPackage struct {
	name    string
	names   map[string]bool            // exported names of the package
	members map[string]map[string]bool // fields and methods by their type
	fields  map[string]map[string]bool // exported fields by their struct
	embeds  map[string][]string        // types of the package by the type that embeds them
	groups  map[string][]string        // types of the package by the fields that have them
	docs    []comment
}

// comment is a text in a Go file.
type comment struct {
	text string
	file string
	line int
}

var (
	modulePath = regexp.MustCompile(`(?m)^(?:module |require |\t)([a-z]+\.[a-z.]+(?:/\S+)?)[ \n]`)
	makeTarget = regexp.MustCompile(`(?m)^([a-z][a-z/_-]*):`)
	setting    = regexp.MustCompile(`REPRISE_[A-Z_]+[A-Z]`)
	testName   = regexp.MustCompile(`^(Test|Benchmark|Fuzz|Example)`)
)

// load reads the project below dir.
func load(dir string) (*project, error) {
	p := &project{
		dir: dir, packages: map[string]*goPackage{}, exported: map[string]bool{}, tests: map[string]bool{},
		targets: map[string]bool{}, settings: map[string]bool{}, modules: map[string]bool{},
	}
	makefile, err := os.ReadFile(filepath.Join(dir, "Makefile"))
	if err != nil {
		return nil, err
	}
	for _, m := range makeTarget.FindAllSubmatch(makefile, -1) {
		p.targets[string(m[1])] = true
	}
	p.findSettings(makefile)
	return p, filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		base := entry.Name()
		if entry.IsDir() {
			if name != dir && (base == "testdata" || base == "node_modules" || strings.HasPrefix(base, ".") && base != ".ci") {
				return filepath.SkipDir
			}
			return nil
		}
		file, err := filepath.Rel(dir, name)
		if err != nil {
			return err
		}
		return p.read(filepath.ToSlash(file))
	})
}

func (p *project) findSettings(text []byte) {
	for _, name := range setting.FindAll(text, -1) {
		p.settings[string(name)] = true
	}
}

// read takes in one file.
func (p *project) read(file string) error {
	isGo, isPage := path.Ext(file) == ".go", path.Ext(file) == ".md"
	isModule, isScript := path.Ext(file) == ".mod", strings.HasPrefix(file, ".ci/")
	if !isGo && !isPage && !isModule && !isScript {
		return nil
	}
	text, err := os.ReadFile(filepath.Join(p.dir, filepath.FromSlash(file)))
	switch {
	case err != nil:
		return err
	case isPage:
		p.pages = append(p.pages, markdown.Read(file, string(text)))
		return nil
	case isModule:
		for _, m := range modulePath.FindAllSubmatch(text, -1) {
			p.modules[string(m[1])] = true
		}
		return nil
	case isScript:
		p.findSettings(text)
		return nil
	}
	p.findSettings(text)
	set := token.NewFileSet()
	parsed, err := parser.ParseFile(set, filepath.Join(p.dir, filepath.FromSlash(file)), text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	p.readGo(file, set, parsed)
	return nil
}

func (p *project) readGo(file string, set *token.FileSet, parsed *ast.File) {
	at := func(group *ast.CommentGroup) comment {
		return comment{group.Text(), file, set.Position(group.Pos()).Line}
	}
	if ast.IsGenerated(parsed) {
		return // its comments are not ours
	}
	for _, group := range parsed.Comments {
		p.comments = append(p.comments, at(group))
	}
	if strings.HasSuffix(file, "_test.go") {
		for _, d := range parsed.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && testName.MatchString(f.Name.Name) {
				p.tests[f.Name.Name] = true
			}
		}
		return
	}
	folder := path.Dir(file)
	pkg := p.packages[folder]
	if pkg == nil {
		pkg = &goPackage{name: parsed.Name.Name, names: map[string]bool{}, members: map[string]map[string]bool{}, fields: map[string]map[string]bool{}, embeds: map[string][]string{}, groups: map[string][]string{}}
		p.packages[folder] = pkg
	}
	doc := func(group *ast.CommentGroup) {
		if group != nil {
			pkg.docs = append(pkg.docs, at(group))
		}
	}
	doc(parsed.Doc)
	for _, d := range parsed.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			doc(d.Doc)
			if d.Recv == nil {
				p.export(pkg, d.Name.Name)
			} else {
				p.exportMember(pkg, typeName(d.Recv.List[0].Type), d.Name.Name)
			}
		case *ast.GenDecl:
			doc(d.Doc)
			for _, s := range d.Specs {
				p.readSpec(pkg, s, doc)
			}
		}
	}
}

func (p *project) readSpec(pkg *goPackage, s ast.Spec, doc func(*ast.CommentGroup)) {
	switch s := s.(type) {
	case *ast.ValueSpec:
		doc(s.Doc)
		for _, n := range s.Names {
			p.export(pkg, n.Name)
		}
	case *ast.TypeSpec:
		doc(s.Doc)
		p.export(pkg, s.Name.Name)
		var fields *ast.FieldList
		switch t := s.Type.(type) {
		case *ast.StructType:
			fields = t.Fields
		case *ast.InterfaceType:
			fields = t.Methods
		default:
			return
		}
		_, isStruct := s.Type.(*ast.StructType)
		if isStruct {
			pkg.fields[s.Name.Name] = map[string]bool{}
		}
		for _, f := range fields.List {
			doc(f.Doc)
			for _, n := range f.Names {
				p.exportMember(pkg, s.Name.Name, n.Name)
				if isStruct && n.IsExported() {
					pkg.fields[s.Name.Name][n.Name] = true
					if t := typeName(f.Type); ast.IsExported(t) {
						pkg.groups[n.Name] = append(pkg.groups[n.Name], t)
					}
				}
			}
			if inner := typeName(f.Type); f.Names == nil && inner != "" {
				pkg.embeds[s.Name.Name] = append(pkg.embeds[s.Name.Name], inner)
			}
		}
	}
}

func (p *project) export(pkg *goPackage, name string) {
	if ast.IsExported(name) {
		pkg.names[name], p.exported[name] = true, true
	}
}

func (p *project) exportMember(pkg *goPackage, typ, name string) {
	if !ast.IsExported(name) {
		return
	}
	if pkg.members[typ] == nil {
		pkg.members[typ] = map[string]bool{}
	}
	pkg.members[typ][name], p.exported[name] = true, true
}

// has reports whether a type has a member, its own or one of a type that it embeds.
func (g *goPackage) has(typ, member string) bool {
	return g.members[typ][member] || slices.ContainsFunc(g.embeds[typ], func(inner string) bool { return g.has(inner, member) })
}

// typeName returns the name of a receiver's type.
func typeName(t ast.Expr) string {
	switch t := t.(type) {
	case *ast.StarExpr:
		return typeName(t.X)
	case *ast.IndexExpr:
		return typeName(t.X)
	case *ast.Ident:
		return t.Name
	default:
		return ""
	}
}
