package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// A page has a generated part between a comment that names what it is made of and the
// next "<!-- end -->":
//
//	<!-- options: core.Config, core/protocol.Limits -->    the fields of structs
var generatedPart = regexp.MustCompile(`(?s)<!-- options: ([^>]*?) -->\n.*?<!-- end -->`)

// generate returns the text of a page with its generated parts made anew.
func generate(dir, text string) (string, error) {
	var failed error
	made := generatedPart.ReplaceAllStringFunc(text, func(part string) string {
		m := generatedPart.FindStringSubmatch(part)
		var names, tables []string
		for of := range strings.SplitSeq(m[1], ",") {
			name, rows, err := tableOf(dir, strings.TrimSpace(of))
			if err != nil && failed == nil {
				failed = err
			}
			if last := len(tables) - 1; last >= 0 && tables[last] == rows { // structs with the same fields share a table
				names[last] += ", " + name
				continue
			}
			names, tables = append(names, name), append(tables, rows)
		}
		var all strings.Builder
		for i, rows := range tables {
			fmt.Fprintf(&all, "\n| %s | default | |\n|---|---|---|\n%s", names[i], rows)
		}
		return fmt.Sprintf("<!-- options: %s -->\n%s\n<!-- end -->", m[1], all.String())
	})
	return made, failed
}

// tableOf returns the name and the rows of a table.
func tableOf(dir, of string) (title, rows string, err error) {
	folder, name := filepath.Split(of)
	pkg, name, ok := strings.Cut(name, ".")
	if !ok {
		return "", "", fmt.Errorf("options: %q is not a struct in a package", of)
	}
	folder = filepath.Join(folder, pkg)
	files, err := parseFolder(filepath.Join(dir, folder))
	if err != nil {
		return "", "", err
	}
	for _, f := range files {
		for _, decl := range f.Decls {
			gen, ok := decl.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, spec := range gen.Specs {
				if typ, ok := spec.(*ast.TypeSpec); ok && typ.Name.Name == name {
					if fields, ok := typ.Type.(*ast.StructType); ok {
						title = f.Name.Name + "." + name
						rows, err = optionsOf(title, fields)
						return "`" + title + "`", rows, err
					}
				}
			}
		}
	}
	return "", "", fmt.Errorf("options: there is no struct %s in %s", name, folder)
}

func parseFolder(folder string) ([]*ast.File, error) {
	names, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil || len(names) == 0 {
		return nil, fmt.Errorf("no Go files in %s: %w", folder, err)
	}
	var files []*ast.File
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	return files, nil
}

// optionsOf makes the rows of a struct: each field with its default and the first
// sentence of its comment.
func optionsOf(typ string, of *ast.StructType) (string, error) {
	var b strings.Builder
	for _, field := range of.Fields.List {
		for _, name := range field.Names {
			if !name.IsExported() {
				continue
			}
			text := field.Doc.Text()
			if text == "" {
				text = field.Comment.Text()
			}
			says, byDefault := option(name.Name, text)
			if says == "" {
				return "", fmt.Errorf("options: %s.%s has no comment", typ, name.Name)
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", name.Name, byDefault, says)
		}
	}
	return b.String(), nil
}

var (
	sentenceEnd   = regexp.MustCompile(`\. +`)
	defaultOf     = regexp.MustCompile(`^(?:The default(?:, 0,)? is|By default,?|Default:?|(?:Nil|Zero|Empty)(?: is| means)?) (.*)$`)
	defaultAfter  = regexp.MustCompile(`[;,] (?:by default|default|(?:nil|zero|empty) (?:means|is)) ((?:[^,]|,\d)*)`)
	linkInComment = regexp.MustCompile(`\[\*?([\w./]+)\]((?:\.\w+)*)`)
	onlyIf        = regexp.MustCompile(`^, if [^,]+, (?:is |are )?`)
	none          = regexp.MustCompile(`^(?:none|no bound|off)\b.*`)
	details       = regexp.MustCompile(`(?:[:;]|, (?:such as|for|so that|to|instead of|which|until|or not|beside|if|with any|by)) [^\d()]*$| \(see [^)]*\)`)
)

// option returns the first clause of a field's comment, with what follows if that has
// numbers, and the default that it or another sentence names, if it is not none.
func option(field, text string) (says, byDefault string) {
	text = strings.Join(strings.Fields(text), " ")
	text = linkInComment.ReplaceAllStringFunc(text, func(link string) string {
		m := linkInComment.FindStringSubmatch(link)
		return "`" + m[1][strings.LastIndex(m[1], "/")+1:] + m[2] + "`"
	})
	sentences := split(text)
	if len(sentences) == 0 {
		return "", ""
	}
	says = sentences[0]
	if m := defaultAfter.FindStringSubmatchIndex(says); m != nil {
		says, byDefault = says[:m[0]]+says[m[1]:], says[m[2]:m[3]]
	}
	if rest, ok := strings.CutPrefix(says, field); ok {
		says = onlyIf.ReplaceAllString(rest, "")
		says = strings.TrimPrefix(says, " ")
	}
	for _, words := range []string{"is ", "are "} {
		says = strings.TrimPrefix(says, words)
	}
	for _, s := range sentences[1:] {
		if m := defaultOf.FindStringSubmatch(s); m != nil && byDefault == "" {
			byDefault = m[1]
		}
	}
	says, byDefault = details.ReplaceAllString(says, ""), none.ReplaceAllString(details.ReplaceAllString(byDefault, ""), "")
	return strings.ReplaceAll(says, "|", `\|`), strings.ReplaceAll(byDefault, "|", `\|`)
}

// split returns the sentences of a text, without their full stops.
func split(text string) []string {
	var sentences []string
	for text != "" {
		end := sentenceEnd.FindStringIndex(text)
		if end == nil {
			return append(sentences, strings.TrimSuffix(text, "."))
		}
		sentences, text = append(sentences, text[:end[0]]), text[end[1]:]
	}
	return sentences
}

// pages writes the pages with generated parts, or returns the names of those that differ
// from what they would be.
func pages(dir string, write bool) (stale []string, err error) {
	names, err := filepath.Glob(filepath.Join(dir, "docs", "*", "*.md"))
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		made, err := generate(dir, string(text))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if made == string(text) {
			continue
		}
		if write {
			if err := os.WriteFile(name, []byte(made), 0o644); err != nil {
				return nil, err
			}
			continue
		}
		rel, _ := filepath.Rel(dir, name) // both are absolute or relative
		stale = append(stale, filepath.ToSlash(rel))
	}
	return stale, nil
}
