package command

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/reprise-go/reprise/core/operate"
	"github.com/reprise-go/reprise/core/protocol"
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
		if r := &l.records[i]; r.ID[1] != want || operate.NeedOf(r) != operate.NeedsPerson {
			t.Errorf("number %d is of page %d, and needs %v", i, r.ID[1], operate.NeedOf(r))
		}
	}
	if cap(l.records) > 10*pageSize {
		t.Errorf("there was room for %d records", cap(l.records))
	}
}

// damaged is an inspector of one completed record, whose answer cannot be read.
type damaged struct {
	store.Inspector
	payload []byte
}

func (d damaged) record() store.Record {
	return store.Record{ID: store.ID{1}, State: store.StateCompleted, Fence: 1, Size: len(d.payload)}
}

func (d damaged) List(_ context.Context, q store.Query) (page store.Page, _ error) {
	page.Scanned = 1
	if q.States.Has(store.StateCompleted) {
		page.Records = append(page.Records, d.record())
	}
	return page, nil
}

func (d damaged) Inspect(context.Context, store.ID) (store.Record, error) {
	r := d.record()
	r.Payload = d.payload
	return r, nil
}

// list and stuck are of one mind about a completed record whose answer cannot be read:
// it needs a person. Where answers are not read, neither says anything about it.
func TestUnreadableAnswerNeedsAPersonInEveryListing(t *testing.T) {
	t.Parallel()
	kept, err := operate.Encode(protocol.Response{Status: 201, Body: []byte("paid")})
	must(t, err)
	unreadable, completed := store.States(store.StateUnreadable), store.States(store.StateCompleted)
	for name, c := range map[string]struct {
		payload []byte
		s       selection
		found   int
		need    operate.Need
	}{
		"list":                    {kept[:9], selection{query: store.Query{States: completed}}, 1, operate.NeedsNone},
		"list, unreadable":        {kept[:9], selection{query: store.Query{States: unreadable}, answers: true}, 1, operate.NeedsPerson},
		"list, both":              {kept[:9], selection{query: store.Query{States: unreadable | completed}, answers: true}, 1, operate.NeedsPerson},
		"stuck":                   {kept[:9], selection{query: store.Query{States: operate.MayNeedPerson}, persons: true}, 0, 0},
		"stuck, answers":          {kept[:9], selection{query: store.Query{States: operate.MayNeedPerson}, persons: true, answers: true}, 1, operate.NeedsPerson},
		"stuck, answers, empty":   {nil, selection{query: store.Query{States: operate.MayNeedPerson}, persons: true, answers: true}, 1, operate.NeedsPerson},
		"list, unreadable, whole": {kept, selection{query: store.Query{States: unreadable}, answers: true}, 0, 0},
		"stuck, answers, whole":   {kept, selection{query: store.Query{States: operate.MayNeedPerson}, persons: true, answers: true}, 0, 0},
	} {
		l := scan(t.Context(), &connect.Store{Look: damaged{payload: c.payload}}, &c.s, ui.NewStream(os.Stderr, os.Getenv).Progress())
		if l.err != nil || len(l.records) != c.found {
			t.Errorf("%s: found %d, %v", name, len(l.records), l.err)
			continue
		}
		for i := range l.records {
			if needs := newRecordJSON(&l.records[i]).Needs; needs != c.need.String() {
				t.Errorf("%s: needs %q, want %q", name, needs, c.need)
			}
		}
	}
}
