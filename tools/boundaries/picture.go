package main

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// pictureFile has the picture of the rooms: the first mermaid diagram in it.
const pictureFile = "CONTRIBUTING.md"

// A picture is a diagram of which room imports which.
type picture struct {
	rooms []string                   // the labels: a folder, or "store/*" for all folders in one
	edges map[string]map[string]bool // from room to room
}

var (
	pictureNode = regexp.MustCompile(`(\w+)\["([^"]+)"\]`)
	pictureEdge = regexp.MustCompile(`^\s*(\w+)(?:\["[^"]+"\])?\s*-->\s*(\w+)`)
)

// readPicture reads the diagram in the text of a page.
func readPicture(page string) (picture, error) {
	_, rest, found := strings.Cut(page, "```mermaid\n")
	diagram, _, closed := strings.Cut(rest, "```")
	if !found || !closed {
		return picture{}, fmt.Errorf("%s has no mermaid diagram", pictureFile)
	}
	labels := map[string]string{}
	for _, m := range pictureNode.FindAllStringSubmatch(diagram, -1) {
		labels[m[1]] = m[2]
	}
	p := picture{rooms: slices.Sorted(maps.Values(labels)), edges: map[string]map[string]bool{}}
	for line := range strings.Lines(diagram) {
		m := pictureEdge.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		from, to := labels[m[1]], labels[m[2]]
		if from == "" || to == "" {
			return picture{}, fmt.Errorf("%s: the diagram has no label for an end of %q", pictureFile, strings.TrimSpace(line))
		}
		if p.edges[from] == nil {
			p.edges[from] = map[string]bool{}
		}
		p.edges[from][to] = true
	}
	return p, nil
}

// roomOf returns the room of the picture that a folder belongs to, or "".
func (p picture) roomOf(folder string) string {
	best := ""
	for _, label := range p.rooms {
		parent, all := strings.CutSuffix(label, "/*")
		if (within(folder, label) || all && within(folder, parent) && folder != parent) && len(label) > len(best) {
			best = label
		}
	}
	return best
}

// reaches reports whether the picture leads from one room to another.
func (p picture) reaches(from, to string, seen map[string]bool) bool {
	if p.edges[from][to] {
		return true
	}
	seen[from] = true
	for next := range p.edges[from] {
		if !seen[next] && p.reaches(next, to, seen) {
			return true
		}
	}
	return false
}

// checkPicture compares the picture with the imports: an arrow of the picture is an
// import, and every import follows arrows. Tests count in rooms that are not published.
func checkPicture(p picture, pkgs []pkg) []string {
	var bad []string
	imports := map[[2]string]string{} // from and to: an example
	for _, from := range pkgs {
		room := p.roomOf(from.path)
		if room == "" {
			bad = append(bad, pictureFile+": the picture has no room for "+from.path)
			continue
		}
		list := from.imports
		if !published(from.path) {
			list = slices.Concat(list, from.tests)
		}
		for _, imported := range list {
			if folder, ours := strings.CutPrefix(imported, root); ours {
				if to := p.roomOf(folder); to != "" && to != room {
					edge := [2]string{room, to}
					imports[edge] = cmp.Or(imports[edge], from.path+" imports "+folder)
				}
			}
		}
	}
	for edge, example := range imports {
		if !p.reaches(edge[0], edge[1], map[string]bool{}) {
			bad = append(bad, fmt.Sprintf("%s: the picture does not lead from %s to %s, but %s", pictureFile, edge[0], edge[1], example))
		}
	}
	for from, list := range p.edges {
		for to := range list {
			if imports[[2]string{from, to}] == "" {
				bad = append(bad, fmt.Sprintf("%s: the picture leads from %s to %s, which nothing there imports", pictureFile, from, to))
			}
		}
	}
	slices.Sort(bad)
	return bad
}
