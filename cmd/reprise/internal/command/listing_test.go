package command

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/reprise-go/reprise/core/store"

	"github.com/reprise-go/reprise/cmd/reprise/internal/connect"
	"github.com/reprise-go/reprise/cmd/reprise/internal/ui"
)

// long is an inspector with a listing of many pages of completed records, each of which
// has one that needs a person. Later pages have older ones, and repeat the page before.
type long struct {
	store.Inspector
	pages int
	began time.Time
}

func (l long) List(_ context.Context, q store.Query) (store.Page, error) {
	n, _ := strconv.Atoi(q.After)
	page := store.Page{Scanned: q.Limit}
	for _, n := range []int{max(n-1, 0), n} {
		for i := range q.Limit {
			r := store.Record{ID: store.ID{1, byte(n), byte(i >> 8), byte(i)}, State: store.StateCompleted, CompletedAt: l.began}
			if i == 500 {
				r.State, r.AtMostOnce, r.ClaimedAt = store.StateLapsed, true, l.began.Add(-time.Duration(n)*time.Hour)
			}
			page.Records = append(page.Records, r)
		}
	}
	if n+1 < l.pages {
		page.Next = strconv.Itoa(n + 1)
	}
	return page, nil
}

// A listing for programs is written record by record, and is one JSON document.
func TestListingIsStreamed(t *testing.T) {
	t.Parallel()
	for n, most := range map[int]int{0: 1 << 10, 1: 1 << 10, 20_000: 16 << 10} {
		l := &listing{records: make([]store.Record, n), scanned: int64(n), over: true}
		var out measured
		writeListing(&out, l)
		var read struct {
			Records []recordJSON `json:"records"`
			listingJSON
		}
		if err := json.Unmarshal(out.Bytes(), &read); err != nil || len(read.Records) != n || read.Records == nil || read.Scanned != int64(n) || !read.Complete {
			t.Errorf("%d records: %d read, %v", n, len(read.Records), err)
		}
		if out.largest > most {
			t.Errorf("%d records: %d bytes were written at once", n, out.largest)
		}
	}
}

// measured is a buffer that knows its largest write.
type measured struct {
	bytes.Buffer
	largest int
}

func (m *measured) Write(p []byte) (int, error) {
	m.largest = max(m.largest, len(p))
	return m.Buffer.Write(p)
}

// A listing of many records keeps those that come first, and little more in memory.
func TestScanKeepsTheFirstOfManyPages(t *testing.T) {
	t.Parallel()
	st := &connect.Store{Look: long{pages: 30, began: time.Now()}}
	l := scan(t.Context(), st, &selection{limit: 4}, ui.NewStream(os.Stderr, os.Getenv).Progress())
	if l.err != nil || !l.over || len(l.records) != 4 || l.scanned != 30*pageSize {
		t.Fatalf("%d records, %d looked at, %v", len(l.records), l.scanned, l.err)
	}
	for i, want := range []byte{29, 28, 27, 26} {
		if r := &l.records[i]; r.ID[1] != want || needOf(r) != needsPerson {
			t.Errorf("number %d is of page %d, and needs %v", i, r.ID[1], needOf(r))
		}
	}
	if cap(l.records) > 10*pageSize {
		t.Errorf("there was room for %d records", cap(l.records))
	}
}
