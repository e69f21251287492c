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
		var tables strings.Builder
		for of := range strings.SplitSeq(m[1], ",") {
			table, err := tableOf(dir, strings.TrimSpace(of))
			if err != nil && failed == nil {
				failed = err
			}
			tables.WriteString("\n" + table)
		}
		return fmt.Sprintf("<!-- options: %s -->\n%s\n<!-- end -->", m[1], tables.String())
	})
	return made, failed
}

func tableOf(dir, of string) (string, error) {
	folder, name := filepath.Split(of)
	pkg, name, ok := strings.Cut(name, ".")
	if !ok {
		return "", fmt.Errorf("options: %q is not a struct in a package", of)
	}
	folder = filepath.Join(folder, pkg)
	files, err := parseFolder(filepath.Join(dir, folder))
	if err != nil {
		return "", err
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
						return optionsOf(f.Name.Name+"."+name, fields)
					}
				}
			}
		}
	}
	return "", fmt.Errorf("options: there is no struct %s in %s", name, folder)
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

// optionsOf makes the table of a struct: each field with its default and the first
// sentence of its comment.
func optionsOf(typ string, of *ast.StructType) (string, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "| `%s` | default | |\n|---|---|---|\n", typ)
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
			if byDefault == "" {
				byDefault = zero(field.Type)
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", name.Name, byDefault, says)
		}
	}
	return b.String(), nil
}

// zero describes the zero value of a type, for fields whose comment names no default. Of
// a named type it is empty: the value may be anything.
func zero(typ ast.Expr) string {
	switch typ := typ.(type) {
	case *ast.FuncType, *ast.ArrayType, *ast.MapType, *ast.StarExpr:
		return "none"
	case *ast.Ident:
		switch typ.Name {
		case "bool":
			return "false"
		case "string":
			return "none"
		}
	}
	return ""
}

var (
	sentenceEnd   = regexp.MustCompile(`\. +`)
	defaultOf     = regexp.MustCompile(`^(?:The default(?:, 0,)? is|By default,?|Default:?|(?:Nil|Zero|Empty)(?: is| means)?) (.*)$`)
	defaultAfter  = regexp.MustCompile(`[;,] (?:by default|default|(?:nil|zero|empty) (?:means|is)) ((?:[^,]|,\d)*)`)
	linkInComment = regexp.MustCompile(`\[\*?([\w./]+)\]((?:\.\w+)*)`)
	onlyIf        = regexp.MustCompile(`^, if [^,]+, (?:is |are )?`)
)

// option returns the first sentence of a field's comment, and the default that it or
// another one names.
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
