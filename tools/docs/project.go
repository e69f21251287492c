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
	"strings"

	"github.com/reprise-go/reprise/tools/internal/markdown"
)

// project is the names that documents may use.
type project struct {
	dir      string
	pages    []*markdown.Page
	comments []comment
	targets  map[string]bool            // of make
	words    map[string]bool            // identifiers of code, words of its strings and of other files, and names of files
	imported map[string]bool            // last elements of the paths of imports
	packages map[string]map[string]bool // exported names by the published package that declares them
	at       string                     // file and line of the name that is looked up
	bad      []string                   // a line for each name that is not resolved
}

// comment is a text in a Go file.
type comment struct {
	text, file string
	line       int
}

var (
	makeTarget = regexp.MustCompile(`(?m)^([a-z][a-z/]*):`)

	// word matches identifiers, flags and variables, and sources the other files that have
	// some.
	word    = regexp.MustCompile(`[A-Za-z_][\w-]*`)
	sources = regexp.MustCompile(`(^|/)(Makefile|\.ci/\w+|[^/]+\.(ya?ml|sql|lua|work|mod|js|mjs|json|toml|proto))$`)
)

// load reads the project below dir.
func load(dir string) (*project, error) {
	p := &project{
		dir: dir, targets: map[string]bool{}, words: map[string]bool{}, imported: map[string]bool{},
		packages: map[string]map[string]bool{},
	}
	return p, fs.WalkDir(os.DirFS(dir), ".", func(file string, entry fs.DirEntry, err error) error {
		name := entry.Name()
		switch {
		case err != nil:
			return err
		case entry.IsDir() && file != "." && (name == "node_modules" || strings.HasPrefix(name, ".") && name != ".ci" && name != ".github"):
			return fs.SkipDir
		case entry.IsDir():
			return nil
		}
		p.words[name] = true
		text, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(file)))
		switch {
		case err != nil:
			return err
		case path.Ext(file) == ".go":
			return p.readGo(file, text)
		case path.Ext(file) == ".md" && !strings.Contains(file, "testdata/"):
			p.pages = append(p.pages, markdown.Read(file, string(text)))
		case file == "Makefile":
			for _, m := range makeTarget.FindAllStringSubmatch(string(text), -1) {
				p.targets[m[1]] = true
			}
			fallthrough
		case sources.MatchString(file):
			p.addWords(string(text))
		}
		return nil
	})
}

func (p *project) addWords(text string) {
	for _, w := range word.FindAllString(text, -1) {
		p.words[w] = true
	}
}

// readGo takes the names of a Go file.
func (p *project) readGo(file string, text []byte) error {
	set := token.NewFileSet()
	parsed, err := parser.ParseFile(set, file, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	if !ast.IsGenerated(parsed) {
		for _, group := range parsed.Comments {
			p.comments = append(p.comments, comment{group.Text(), file, set.Position(group.Pos()).Line})
		}
	}
	for _, i := range parsed.Imports {
		p.imported[path.Base(major.ReplaceAllString(strings.Trim(i.Path.Value, `"`), ""))] = true
		if i.Name != nil {
			p.imported[i.Name.Name] = true
		}
	}
	exported := map[string]bool{}
	if pkg := parsed.Name.Name; !private.MatchString(file) && !strings.HasSuffix(pkg, "_test") && pkg != "main" {
		if p.packages[pkg] == nil {
			p.packages[pkg] = map[string]bool{}
		}
		exported = p.packages[pkg]
	}
	ast.Inspect(parsed, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Ident:
			p.words[n.Name] = true
		case *ast.BasicLit:
			p.addWords(n.Value)
		case *ast.FuncDecl:
			if n.Recv == nil {
				exported[n.Name.Name] = true
			}
		case *ast.TypeSpec:
			exported[n.Name.Name] = true
		case *ast.ValueSpec:
			for _, name := range n.Names {
				exported[name.Name] = true
			}
		}
		return true
	})
	return nil
}

// major matches the end of the path of a module's later version.
var major = regexp.MustCompile(`/v\d+$`)

// private matches the files whose packages no page means by their name alone.
var private = regexp.MustCompile(`^(lab|examples|tools)/|(^|/)internal/`)
