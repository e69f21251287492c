package main

import (
	"maps"
	"slices"
	"strings"
)

// consumerPath is the module path of each module of a consumer.
const consumerPath = "example.com/consumer"

// graph maps a module to those that its go.mod requires, by their paths.
type graph map[string][]string

// parseGraph reads the output of go mod graph.
func parseGraph(text string) graph {
	g := graph{}
	for line := range strings.Lines(text) {
		from, to, _ := strings.Cut(strings.TrimSpace(line), " ")
		from, _, _ = strings.Cut(from, "@")
		to, _, _ = strings.Cut(to, "@")
		if to != "go" && to != "toolchain" && !slices.Contains(g[from], to) {
			g[from] = append(g[from], to)
		}
	}
	return g
}

// closure returns the modules that others require, directly or through more, and these
// themselves.
func (g graph) closure(of []string) map[string]bool {
	known := map[string]bool{}
	for next := of; len(next) > 0; {
		path := next[0]
		if next = next[1:]; !known[path] {
			known[path] = true
			next = append(slices.Clip(next), g[path]...)
		}
	}
	return known
}

// strangers returns the modules that a consumer of some modules of the release should
// not get: those that the code of none of them asks for, such as a library of tests, and
// the frameworks and clients of the other adapters and stores.
func (g graph) strangers(asked, released []module) []string {
	needed := maps.Clone(g)
	delete(needed, consumerPath)
	var direct, foreign []string
	for _, m := range asked {
		delete(needed, m.path()) // its go.mod lists more than its code imports
		direct = append(direct, m.path())
		for _, path := range m.direct() {
			direct = append(direct, path)
			if !strings.HasPrefix(path, prefix) {
				foreign = append(foreign, path)
			}
		}
	}
	others := map[string]bool{}
	for _, m := range released {
		if top, _, _ := strings.Cut(m.folder, "/"); top == "adapters" || top == "store" {
			for _, path := range m.direct() {
				others[path] = !strings.HasPrefix(path, prefix)
			}
		}
	}
	known, own := needed.closure(direct), g.closure(foreign)
	got := g.closure([]string{consumerPath})
	delete(got, consumerPath)
	var found []string
	for path := range got {
		if !known[path] || others[path] && !own[path] {
			found = append(found, path)
		}
	}
	slices.Sort(found)
	return found
}
