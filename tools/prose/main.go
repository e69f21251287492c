// Command prose measures the comments of the Go files in a tree: how often four groups of
// words occur that mark a convoluted sentence, and which comments are wider than 90
// columns.
//
// It prints a table of the occurrences per 10,000 words, and exits with 1 if a number is
// above its limit. With -places it prints the file and line of each counted word.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"text/tabwriter"
)

// areas are the rows of the table. A file counts in each area whose folders match its
// path.
var areas = [...]struct {
	name    string
	folders *regexp.Regexp
}{
	{"ships", regexp.MustCompile(`^(adapters|blob|client|cmd|console|core|otel|reprisetest|store)/`)},
	{"conformance, lab", regexp.MustCompile(`^(conformance|lab)/`)},
	{"all", regexp.MustCompile(``)},
}

func main() {
	root := flag.String("root", ".", "the folder to measure")
	places := flag.Bool("places", false, "print the file and line of each counted word")
	flag.Parse()
	m, err := measure(*root)
	if err != nil {
		fmt.Fprintln(os.Stderr, "prose:", err)
		os.Exit(2)
	}
	if *places {
		for _, place := range m.places {
			fmt.Println(place)
		}
	}
	if m.report(os.Stdout) > 0 {
		os.Exit(1)
	}
}

// report writes the table and the comments that are too wide, and returns the number of
// limits that are exceeded.
func (m *measured) report(out io.Writer) int {
	exceeded := 0
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprint(table, "per 10,000 words of comments")
	for _, g := range groups {
		fmt.Fprintf(table, "\t%s (≤ %d)", g.name, g.limit)
	}
	fmt.Fprintln(table, "\twords")
	for i, c := range m.counts {
		fmt.Fprint(table, areas[i].name)
		for g := range groups {
			mark := ""
			if c.above(g) {
				mark = " above"
				exceeded++
			}
			fmt.Fprintf(table, "\t%.1f%s", c.rate(g), mark)
		}
		fmt.Fprintf(table, "\t%d\n", c.words)
	}
	table.Flush()
	for _, place := range m.wide {
		fmt.Fprintln(out, place)
	}
	return exceeded + len(m.wide)
}
