package report

import (
	"fmt"
	"path/filepath"
	"regexp"
)

// choice is the page about the choice of a store, beside the folder of figures.
var choice = filepath.Join("..", "which-store.md")

// addedCell is a part of a row of that page: the latency that a variant of a suite adds.
var addedCell = regexp.MustCompile(`<!-- added: (\S+) (\S+) -->.*?<!-- end -->`)

// fillCells makes the figures of that page, whose prose stays as it is.
func (r Results) fillCells(text string) string {
	return addedCell.ReplaceAllStringFunc(text, func(cell string) string {
		of := addedCell.FindStringSubmatch(cell)
		figures := r.adds(of[1], of[2], "new") + ", " + r.adds(of[1], of[2], "replay")
		if figures == "–, –" {
			figures = "–"
		}
		return fmt.Sprintf("<!-- added: %s %s -->%s<!-- end -->", of[1], of[2], figures)
	})
}
