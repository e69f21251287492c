package matrix

import (
	"maps"
	"testing"

	"github.com/reprise-go/reprise/conformance/adaptertest"
)

func TestPageShowsTheSheet(t *testing.T) {
	t.Parallel()
	s := newSheet()
	for i, c := range adaptertest.Cases() {
		for _, a := range Adapters {
			for j, store := range storeNames() {
				r := adaptertest.Result{Case: c, Status: adaptertest.Passed}
				switch (i + j) % 5 {
				case 1:
					r.Status, r.Reason = adaptertest.Waived, "a reason: with, commas and a colon"
				case 2:
					r.Status = adaptertest.NotApplicable
				case 3:
					continue // did not run
				}
				s.report(a, store)(r)
			}
		}
	}
	page := s.page()
	read := readSheet(page)
	if !maps.Equal(read.cells, s.cells) || !maps.Equal(read.waived, s.waived) {
		t.Errorf("read %d cells and %d waivers, want %d and %d", len(read.cells), len(read.waived), len(s.cells), len(s.waived))
	}
	if again := read.page(); again != page {
		t.Errorf("the page changed when it was read: %s", firstDifference(page, again))
	}
	for at, status := range read.cells {
		if status == adaptertest.Passed {
			read.cells[at] = adaptertest.NotApplicable
			break
		}
	}
	if read.page() == page {
		t.Error("another result makes the same page")
	}
}
