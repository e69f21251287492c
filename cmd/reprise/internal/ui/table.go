package ui

import (
	"io"
	"strings"

	"github.com/rivo/uniseg"

	"github.com/reprise-go/reprise/cmd/reprise/internal/safe"
)

// Table is a table of pieces, as wide as its cells.
type Table struct {
	columns []column
	rows    [][]Piece
}

// column is a column with its head, and its width when the table is written.
type column struct {
	head                string
	right, cut, dropped bool
	droppable           bool
	width               int
}

// leastCut is the least width of a column whose cells are cut.
const leastCut = 10

// NewTable returns a table with these headings. Marks may precede a heading: ">" aligns
// the cells of the column right, "~" lets a narrow terminal cut them, and "?" lets it
// drop the column if that is not enough, the last one first.
func NewTable(heads ...string) *Table {
	t := new(Table)
	for _, head := range heads {
		name := strings.TrimLeft(head, ">~?")
		marked := func(mark string) bool { return strings.Contains(head[:len(head)-len(name)], mark) }
		t.columns = append(t.columns, column{head: name, right: marked(">"), cut: marked("~"), droppable: marked("?")})
	}
	return t
}

// Row adds a row.
func (t *Table) Row(cells ...Piece) { t.rows = append(t.rows, cells) }

// fit sets the widths of the columns for a line of so many columns; 0 is any number.
func (t *Table) fit(line int) {
	total, least := -2, -2
	for i := range t.columns {
		c := &t.columns[i]
		c.width, c.dropped = uniseg.StringWidth(c.head), false
		for _, row := range t.rows {
			c.width = max(c.width, uniseg.StringWidth(safe.Field(row[i].Text)))
		}
		total += c.width + 2
		least += c.least() + 2
	}
	if line == 0 {
		return
	}
	for i := len(t.columns) - 1; i >= 0 && least > line; i-- {
		if c := &t.columns[i]; c.droppable {
			c.dropped = true
			total, least = total-c.width-2, least-c.least()-2
		}
	}
	for i := len(t.columns) - 1; i >= 0 && total > line; i-- {
		if c := &t.columns[i]; c.cut && !c.dropped {
			less := min(total-line, c.width-c.least())
			c.width, total = c.width-less, total-less
		}
	}
}

func (c *column) least() int {
	if c.cut {
		return min(c.width, leastCut)
	}
	return c.width
}

// Lines returns the table, the headings first, in lines of so many columns if it can be
// that narrow; 0 is any number.
func (t *Table) Lines(styles *Styles, line int) []string {
	t.fit(line)
	heads := make([]Piece, len(t.columns))
	for i, c := range t.columns {
		heads[i] = Piece{Style: Strong, Text: c.head}
	}
	lines := make([]string, 0, len(t.rows)+1)
	for _, row := range append([][]Piece{heads}, t.rows...) {
		var b strings.Builder
		for i, cell := range row {
			c := &t.columns[i]
			if c.dropped {
				continue
			}
			cell.Text = cutTo(safe.Field(cell.Text), c.width)
			room := strings.Repeat(" ", c.width-uniseg.StringWidth(cell.Text))
			if b.Len() > 0 {
				b.WriteString("  ")
			}
			if c.right {
				b.WriteString(room)
			}
			b.WriteString(styles.Render(cell))
			if !c.right {
				b.WriteString(room)
			}
		}
		lines = append(lines, strings.TrimRight(b.String(), " "))
	}
	return lines
}

// cutTo returns the beginning of a text that is wider than width, with an ellipsis.
func cutTo(text string, width int) string {
	if uniseg.StringWidth(text) <= width {
		return text
	}
	cut := 0
	for g := uniseg.NewGraphemes(text); g.Next() && uniseg.StringWidth(text[:cut])+g.Width() < width; {
		_, cut = g.Positions()
	}
	return text[:cut] + "…"
}

// Table writes a table. It fits a terminal, unless it is to be whole.
func (s *Stream) Table(t *Table, whole bool) {
	line := 0
	if !whole {
		line = s.Width()
	}
	for _, text := range t.Lines(&s.styles, line) {
		_, _ = io.WriteString(s.raw, text+"\n")
	}
}
