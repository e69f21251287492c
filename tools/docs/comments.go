package main

import (
	"regexp"
	"strings"
)

// docLink is a link in a doc comment: a name or a type's member, with or without its
// package, and with an optional star.
var docLink = regexp.MustCompile(`\[\*?(?:([a-z][a-z0-9]*)\.)?([A-Z]\w*)(?:\.([A-Z]\w*))?\]`)

// qualified is a name with its package, as comments have it outside of links and code
// blocks.
var qualified = regexp.MustCompile(`(?:^|[\s(])(reprise\w*|protocol|memstore|storetest|adaptertest|faultstore|conformance)\.([A-Z]\w*)(?:\.([A-Z]\w*))?`)

// comment resolves the names with a package of the project in any comment.
func (r *report) comment(c comment) {
	for i, line := range strings.Split(c.text, "\n") {
		for _, m := range qualified.FindAllStringSubmatch(line, -1) {
			if r.isPackage(m[1]) {
				r.want(r.resolve(m[1], m[2], m[3]), c.file, c.line+i, "there is no %s", strings.TrimLeft(m[0], " \t("))
			}
		}
	}
}

// doc resolves the links of a doc comment, and the Go names in its code blocks.
func (r *report) doc(pkg *goPackage, c comment) {
	code, first := "", 0
	for i, line := range append(strings.Split(c.text, "\n"), "end") {
		if strings.HasPrefix(line, "\t") || strings.HasPrefix(line, "    ") || code != "" && line == "" {
			if code == "" {
				first = c.line + i
			}
			code += line + "\n"
			continue
		}
		if code != "" {
			r.goCode(c.file, first, code, false)
			code = ""
		}
		for _, m := range docLink.FindAllStringSubmatch(line, -1) {
			r.docLink(pkg, c.file, c.line+i, m)
		}
	}
}

// docLink resolves a link in a comment of pkg.
func (r *report) docLink(pkg *goPackage, file string, line int, m []string) {
	prefix, name, member := m[1], m[2], m[3]
	var resolved bool
	switch {
	case prefix == "":
		resolved = pkg.names[name] && (member == "" || pkg.has(name, member))
	default:
		resolved = r.resolve(prefix, name, member)
		if !resolved && r.isForeign(prefix) {
			return
		}
	}
	r.want(resolved, file, line, "the doc link %s leads nowhere", m[0])
}
