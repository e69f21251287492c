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
	all := newSheet()
	all.add(s.ended)
	page := all.page()
	read := readSheet(page)
	if !maps.Equal(read.marks, all.marks) || len(read.gaps) != len(all.gaps) || len(read.gaps) == 0 {
		t.Errorf("read %d marks and %d waivers, want %d and %d", len(read.marks), len(read.gaps), len(all.marks), len(all.gaps))
	}
	if again := read.page(); again != page {
		t.Errorf("the page changed when it was read: %s", firstDifference(page, again))
	}
	for at, r := range s.ended {
		if r.Status != adaptertest.Passed {
			continue
		}
		delete(s.ended, at)
		all = newSheet()
		if all.add(s.ended); all.page() == page {
			t.Errorf("without %v the page is the same", at)
		}
		break
	}
}
