package ui

import (
	"io"
	"strings"

	"github.com/rivo/uniseg"

	"github.com/reprise-go/reprise/cmd/reprise/internal/safe"
)

// Table is a table of pieces, as wide as its cells.
type Table struct {
	heads []string
	rows  [][]Piece
}

// NewTable returns a table with these headings. A heading that starts with ">" is of a
// column whose cells are aligned right.
func NewTable(heads ...string) *Table { return &Table{heads: heads} }

// Row adds a row.
func (t *Table) Row(cells ...Piece) { t.rows = append(t.rows, cells) }

// Lines returns the table, the headings first.
func (t *Table) Lines(styles *Styles) []string {
	widths := make([]int, len(t.heads))
	heads := make([]Piece, len(t.heads))
	for i, head := range t.heads {
		heads[i] = Piece{Style: Strong, Text: strings.TrimPrefix(head, ">")}
	}
	rows := append([][]Piece{heads}, t.rows...)
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], uniseg.StringWidth(safe.Field(cell.Text)))
		}
	}
	lines := make([]string, len(rows))
	for n, row := range rows {
		var b strings.Builder
		for i, cell := range row {
			if i > 0 {
				b.WriteString("  ")
			}
			room := strings.Repeat(" ", widths[i]-uniseg.StringWidth(safe.Field(cell.Text)))
			switch {
			case strings.HasPrefix(t.heads[i], ">"):
				b.WriteString(room + styles.Render(cell))
			case i == len(row)-1:
				b.WriteString(styles.Render(cell))
			default:
				b.WriteString(styles.Render(cell) + room)
			}
		}
		lines[n] = b.String()
	}
	return lines
}

// Table writes a table.
func (s *Stream) Table(t *Table) {
	for _, line := range t.Lines(&s.styles) {
		_, _ = io.WriteString(s.raw, line+"\n")
	}
}
