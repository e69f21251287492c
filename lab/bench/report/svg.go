package report

import (
	"fmt"
	"html"
	"math"
	"slices"
	"strconv"
	"strings"
)

// chart is a picture of a suite in four panels.
type chart struct {
	title  string
	series []string // the variants, in the order of the colours
	panels []panel
	axis   string        // what the panels are against
	x      func(Row) int // the place of a row on that axis
}

func ofConnections(r Row) int { return r.Connections }
func ofKeys(r Row) int        { return int(r.Values["at"]) }

// charts has the suites with a picture.
var charts = map[string]chart{
	"redis":    {"Over Redis: requests per second and CPU time of a request against connections", []string{"nethttp+redis", "nethttp+redis, one by one", "raw2", "setnx"}, byConnections, "connections", ofConnections},
	"postgres": {"Over PostgreSQL: requests per second and CPU time of a request against connections", []string{"nethttp+postgres", "nethttp+postgres-tx", "statements"}, byConnections, "connections", ofConnections},
	"keys":     {"Stores that grow: latency, CPU time and size against records", []string{combined, leased, partitioned}, byRecords, "records", ofKeys},
}

// theme is the colours of a picture. Lines differ in their dashes as well.
type theme struct {
	name, paper, ink, faint string
	lines                   []string
}

var themes = []theme{
	{"light", "#ffffff", "#1f2328", "#d1d9e0", []string{"#0969da", "#8250df", "#57606a", "#9a6700"}},
	{"dark", "#0d1117", "#f0f6fc", "#3d444d", []string{"#58a6ff", "#bc8cff", "#9198a1", "#d29922"}},
}

var dashes = []string{"none", "8 4", "2 4", "10 3 2 3"}

// The measures of a picture, in pixels.
const (
	width, height         = 880, 700
	panelWidth, panelHigh = 350, 220
	left, top             = 64, 96
	columnStep, rowStep   = 430, 305
)

// panel is one of the four diagrams of a picture.
type panel struct {
	title  string
	kind   string
	of     func(Row) float64
	column int
	line   int
}

// byConnections are requests per second and CPU time of a request, for new keys and for
// replays; byRecords is what may grow with the records in a store.
var byConnections = []panel{
	{"New key: requests/s", "new", func(r Row) float64 { return r.PerSecond }, 0, 0},
	{"New key: CPU µs a request, server and store", "new", Row.CPU, 1, 0},
	{"Replay: requests/s", "replay", func(r Row) float64 { return r.PerSecond }, 0, 1},
	{"Replay: CPU µs a request, server and store", "replay", Row.CPU, 1, 1},
}

var byRecords = []panel{
	{"New key: p50, ms", "new", func(r Row) float64 { return r.P50 / 1000 }, 0, 0},
	{"New key: CPU µs of the store's server", "new", func(r Row) float64 { return r.StoreCPU }, 1, 0},
	{"Replay: p50, ms", "replay", func(r Row) float64 { return r.P50 / 1000 }, 0, 1},
	{"Bytes a record", "new", func(r Row) float64 { return r.Values["bytes_per_key"] }, 1, 1},
}

// svg draws the picture. It has no external references.
func (c chart) svg(s Suite, t theme) string {
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%[1]d" height="%[2]d" role="img" font-family="system-ui, sans-serif" font-size="14">`+"\n", width, height)
	fmt.Fprintf(&b, "<title>%s</title>\n<desc>Medians of shuffled rounds, commit %s, %s.</desc>\n", html.EscapeString(c.title), s.Commit, s.Date)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="%s"/>`+"\n", width, height, t.paper)
	c.legend(&b, t)
	places := distinct(slices.DeleteFunc(slices.Clone(s.Rows), func(r Row) bool { return c.x(r) == 0 }), c.x)
	for _, p := range c.panels {
		c.panel(&b, s, t, p, places)
	}
	b.WriteString("</svg>\n")
	return b.String()
}

func (c chart) legend(b *strings.Builder, t theme) {
	x := left
	for i, name := range c.series {
		fmt.Fprintf(b, `<line x1="%d" y1="30" x2="%d" y2="30" stroke="%s" stroke-width="3" stroke-dasharray="%s"/>`+"\n", x, x+34, t.lines[i], dashes[i])
		fmt.Fprintf(b, `<text x="%d" y="35" fill="%s">%s</text>`+"\n", x+42, t.ink, html.EscapeString(name))
		x += 42 + 8*len(name) + 24
	}
}

func (c chart) panel(b *strings.Builder, s Suite, t theme, p panel, places []int) {
	x0, y0 := float64(left+p.column*columnStep), float64(top+p.line*rowStep)
	highest := 0.0
	for _, r := range s.Rows {
		if r.Kind == p.kind && position(c.series, r.Variant) >= 0 {
			highest = math.Max(highest, p.of(r))
		}
	}
	step := tick(highest)
	most := step * math.Ceil(highest/step)
	y := func(v float64) float64 { return y0 + panelHigh*(1-v/most) }
	x := func(i int) float64 { return x0 + panelWidth*float64(i)/math.Max(float64(len(places)-1), 1) }

	fmt.Fprintf(b, `<text x="%.0f" y="%.0f" fill="%s" font-size="15" font-weight="600">%s</text>`+"\n", x0, y0-16, t.ink, p.title)
	for v := 0.0; v <= most+step/2; v += step {
		fmt.Fprintf(b, `<line x1="%.0f" y1="%.1f" x2="%.0f" y2="%.1f" stroke="%s"/>`+"\n", x0, y(v), x0+panelWidth, y(v), t.faint)
		fmt.Fprintf(b, `<text x="%.0f" y="%.1f" fill="%s" text-anchor="end">%s</text>`+"\n", x0-8, y(v)+5, t.ink, short(v))
	}
	for i, n := range places {
		fmt.Fprintf(b, `<text x="%.1f" y="%.0f" fill="%s" text-anchor="middle">%s</text>`+"\n", x(i), y0+panelHigh+20, t.ink, short(float64(n)))
	}
	fmt.Fprintf(b, `<text x="%.0f" y="%.0f" fill="%s" text-anchor="middle">%s</text>`+"\n", x0+panelWidth/2, y0+panelHigh+40, t.ink, c.axis)
	for i, name := range c.series {
		var points []string
		for j, n := range places {
			if r, ok := find(s.Rows, func(r Row) bool { return r.Variant == name && r.Kind == p.kind && c.x(r) == n }); ok {
				points = append(points, fmt.Sprintf("%.1f,%.1f", x(j), y(p.of(r))))
			}
		}
		fmt.Fprintf(b, `<polyline points="%s" fill="none" stroke="%s" stroke-width="3" stroke-dasharray="%s"/>`+"\n", strings.Join(points, " "), t.lines[i], dashes[i])
		for _, point := range points {
			px, py, _ := strings.Cut(point, ",")
			fmt.Fprintf(b, `<circle cx="%s" cy="%s" r="4" fill="%s"/>`+"\n", px, py, t.lines[i])
		}
	}
}

// tick is the distance of about five round numbers up to the highest.
func tick(highest float64) float64 {
	if highest <= 0 {
		return 1
	}
	unit := math.Pow(10, math.Floor(math.Log10(highest/4)))
	for _, m := range []float64{1, 2, 5} {
		if m*unit*5 >= highest {
			return m * unit
		}
	}
	return 10 * unit
}

// short writes a number of the axis.
func short(v float64) string {
	if v >= 1_000_000 {
		return strconv.FormatFloat(v/1_000_000, 'f', -1, 64) + "M"
	}
	if v >= 1000 {
		return strconv.FormatFloat(v/1000, 'f', -1, 64) + "k"
	}
	return strconv.FormatFloat(math.Round(v*1e6)/1e6, 'f', -1, 64) // a multiple of a tick is inexact
}

func position(list []string, what string) int {
	for i, s := range list {
		if s == what {
			return i
		}
	}
	return -1
}
