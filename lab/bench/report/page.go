package report

import (
	"fmt"
	"html"
	"maps"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// File is the file of results in a folder of documentation.
const File = "benchmarks.json"

// made is the part of the page that follows from the results.
var made = regexp.MustCompile(`(?s)<!-- made: results -->\n.*?<!-- end -->\n`)

// Page returns the files in a folder of documentation that follow from the results there,
// by their paths: the page, whose prose stays as it is, and its chart.
func Page(docs string) (map[string]string, error) {
	results, err := Read(filepath.Join(docs, File))
	if err != nil {
		return nil, err
	}
	name := filepath.Join(docs, "benchmarks.md")
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	if !made.Match(text) {
		return nil, fmt.Errorf("%s has no part for the results", name)
	}
	part := "<!-- made: results -->\n\n" + results.table() + "\n" + results.runs() + "<!-- end -->\n"
	return map[string]string{
		name:                                  made.ReplaceAllLiteralString(string(text), part),
		filepath.Join(docs, "benchmarks.svg"): results.chart(),
	}, nil
}

// WritePage writes the files that [Page] returns.
func WritePage(docs string) error {
	files, err := Page(docs)
	if err != nil {
		return err
	}
	for name, text := range files {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// runs returns the table of the suites, when each ran and where, after the versions that
// any of them had.
func (r Results) runs() string {
	var b strings.Builder
	versions := map[string]bool{}
	for _, s := range r {
		for _, version := range append(s.Machine.versions(), s.Machine.Go) {
			versions[version] = true
		}
	}
	fmt.Fprintf(&b, "With %s.\n\n| suite | date, commit | cores | load average before, after | rounds |\n| --- | --- | --- | --- | --- |\n", strings.Join(slices.Sorted(maps.Keys(versions)), ", "))
	for _, name := range slices.Sorted(maps.Keys(r)) {
		s := r[name]
		rounds := "–"
		if s.Rounds > 0 && s.Seconds > 0 {
			rounds = fmt.Sprintf("%d of %g s", s.Rounds, s.Seconds)
		}
		rounds = strings.Join(append([]string{rounds}, s.LeftOut...), "<br>without ")
		fmt.Fprintf(&b, "| `%s` | %s, %s | %d × %s | %.1f, %.1f | %s |\n", name, s.Date, s.Commit, s.Machine.Cores, s.Machine.CPU, s.Machine.Load, s.Machine.After, rounds)
	}
	return b.String()
}

// chart draws what each store adds to a request, on a logarithmic scale, in colours that
// show on light and on dark paper. It has no external references.
func (r Results) chart() string {
	const line, x0, width, most = 46, 220, 560, 10_000
	const ink, faint, newKey, replayed = "#6e7781", "#8c959f", "#3b82f6", "#a371f7"
	x := func(v float64) float64 { return x0 + width*math.Log10(max(v, 10)/10)/math.Log10(most/10) }
	var b, bars strings.Builder
	y := 62
	for i, f := range figures {
		first := slices.IndexFunc(figures, func(g figure) bool { return g.suite == f.suite && g.variant == f.variant })
		_, inTime := r.row(f.suite, "nethttp", fresh, 1)
		if a, ok := r.added(f.suite, f.variant, f.base, fresh); ok && inTime && i == first && f.suite != "also" && f.variant != oneByOne {
			again, _ := r.added(f.suite, f.variant, f.base, replay)
			fmt.Fprintf(&bars, `<text x="%d" y="%d" fill="%s" text-anchor="end">%s</text>`+"\n", x0-12, y+22, ink, html.EscapeString(f.what))
			for k, v := range []float64{a, again} {
				fmt.Fprintf(&bars, `<rect x="%d" y="%d" width="%.1f" height="15" fill="%s"/><text x="%.1f" y="%d" fill="%s" font-size="13">%s</text>`+"\n",
					x0, y+k*18, max(x(v)-x0, 2), []string{newKey, replayed}[k], max(x(v), x0+2)+6, y+k*18+13, ink, tens(v))
			}
			y += line
		}
	}
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 880 %d" width="880" height="%[1]d" role="img" font-family="system-ui, sans-serif" font-size="14">`+"\n", y+50)
	b.WriteString("<title>Microseconds that each store adds to a request: median, one connection, loopback</title>\n<desc>Two bars a store, of a new key and of a replay, on a logarithmic scale.</desc>\n")
	for i, of := range []struct{ name, colour string }{{"new key", newKey}, {"replay", replayed}} {
		fmt.Fprintf(&b, `<rect x="%d" y="22" width="18" height="14" fill="%s"/><text x="%d" y="34" fill="%s">%s</text>`+"\n", x0+i*120, of.colour, x0+24+i*120, ink, of.name)
	}
	for v := 10.0; v <= most; v *= 10 {
		fmt.Fprintf(&b, `<line x1="%.1f" y1="54" x2="%.1f" y2="%d" stroke="%s"/><text x="%.1f" y="%d" fill="%s" text-anchor="middle">%.0f µs</text>`+"\n", x(v), x(v), y+10, faint, x(v), y+32, ink, v)
	}
	b.WriteString(bars.String() + "</svg>\n")
	return b.String()
}
