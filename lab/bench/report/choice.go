package report

import (
	"fmt"
	"path/filepath"
	"regexp"
)

// cellPages are the pages outside of the folder of figures with cells that are made: the
// guide to the choice of a store, and the README.
var cellPages = []string{filepath.Join("..", "guides", "which-store.md"), filepath.Join("..", "..", "README.md")}

// figuresLine is the sentence of the README about the latency that Reprise adds.
var figuresLine = regexp.MustCompile(`(?s)<!-- figures -->.*?<!-- end -->`)

// addedCell is a part of a row of that page: the latency that a variant of a suite adds.
var addedCell = regexp.MustCompile(`<!-- added: (\S+) (\S+) -->.*?<!-- end -->`)

// fillCells makes the figures of such a page, whose prose stays as it is.
func (r Results) fillCells(text string) string {
	text = figuresLine.ReplaceAllLiteralString(text, "<!-- figures -->"+r.line()+"<!-- end -->")
	return addedCell.ReplaceAllStringFunc(text, func(cell string) string {
		of := addedCell.FindStringSubmatch(cell)
		figures := r.adds(of[1], of[2], "new") + ", " + r.adds(of[1], of[2], "replay")
		if figures == "–, –" {
			figures = "–"
		}
		return fmt.Sprintf("<!-- added: %s %s -->%s<!-- end -->", of[1], of[2], figures)
	})
}
