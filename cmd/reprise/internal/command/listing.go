package command

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/reprise-go/reprise/core/store"

	"github.com/reprise-go/reprise/cmd/reprise/internal/connect"
	"github.com/reprise-go/reprise/cmd/reprise/internal/ui"
)

// listing is the records found so far for a query.
type listing struct {
	records []store.Record
	scanned int64
	total   int64  // an estimate; 0 is unknown
	next    string // where it goes on; empty: everything was looked at
	err     error  // why it stopped
}

// pageSize is the number of records of one call: small enough that an error or an
// interrupt loses little.
const pageSize = 1000

// scan looks for up to limit records that q selects, 0 being all, and shows how far it
// is. A record that two pages show counts once.
func scan(ctx context.Context, store *connect.Store, q store.Query, limit int, progress *ui.Progress) *listing {
	return scanPages(ctx, store, q, limit, progress, nil)
}

// scanFor looks at every record, and keeps those that want selects.
func scanFor(ctx context.Context, st *connect.Store, progress *ui.Progress, want func(*store.Record) bool) *listing {
	return scanPages(ctx, st, store.Query{}, 0, progress, want)
}

func scanPages(ctx context.Context, st *connect.Store, q store.Query, limit int, progress *ui.Progress, want func(*store.Record) bool) *listing {
	defer progress.Clear()
	l := &listing{next: q.After}
	seen := make(map[store.ID]bool)
	for {
		q.Limit = pageSize
		if limit > 0 {
			q.Limit = min(pageSize, limit-len(l.records))
		}
		q.After = l.next
		page, err := onePage(ctx, st, q)
		if err != nil {
			l.err = err
			return l
		}
		for i := range page.Records {
			r := &page.Records[i]
			if seen[r.ID] || want != nil && !want(r) {
				continue
			}
			seen[r.ID] = true
			l.records = append(l.records, *r)
		}
		l.scanned += int64(page.Scanned)
		l.total = max(page.Total, l.scanned)
		if page.Total == 0 {
			l.total = 0
		}
		l.next = page.Next
		if l.next == "" || limit > 0 && len(l.records) >= limit {
			return l
		}
		progress.Show(l.scanned, l.total, "%s looked at, %s found", ui.Count(l.scanned), ui.Count(int64(len(l.records))))
	}
}

func onePage(ctx context.Context, st *connect.Store, q store.Query) (store.Page, error) {
	if err := ctx.Err(); err != nil {
		return store.Page{}, err
	}
	ctx, cancel := st.Bounded(ctx)
	defer cancel()
	return st.Look.List(ctx, q)
}

// sortByNeed sorts records that need a person first: lapsed, unknown and unreadable ones,
// the oldest claims first, then running ones, then the latest completed.
func sortByNeed(list []store.Record) {
	rank := func(r *store.Record) int {
		switch r.State {
		case store.StateLapsed, store.StateUnknown:
			return 0
		case store.StateUnreadable:
			return 1
		case store.StateRunning:
			return 2
		default:
			return 3
		}
	}
	slices.SortStableFunc(list, func(a, b store.Record) int {
		if d := rank(&a) - rank(&b); d != 0 {
			return d
		}
		if a.State == store.StateCompleted || a.State == store.StateExpired {
			return b.CompletedAt.Compare(a.CompletedAt)
		}
		if d := a.ClaimedAt.Compare(b.ClaimedAt); d != 0 {
			return d
		}
		return int(min(max(a.Lease-b.Lease, -1), 1))
	})
}

// listingJSON is a listing in the output for programs.
type listingJSON struct {
	Records  []recordJSON `json:"records"`
	Scanned  int64        `json:"scanned"`
	Total    int64        `json:"total_estimate,omitempty"`
	Complete bool         `json:"complete"`
	Next     string       `json:"next,omitempty"`
}

// show prints a listing, and says where it stopped short.
func (c *session) show(l *listing, wide bool) {
	sortByNeed(l.records)
	if c.json {
		out := listingJSON{
			Records: make([]recordJSON, len(l.records)), Scanned: l.scanned, Total: l.total,
			Complete: l.next == "" && l.err == nil, Next: l.next,
		}
		for i := range l.records {
			out.Records[i] = newRecordJSON(&l.records[i])
		}
		c.printJSON(out)
		return
	}
	if len(l.records) == 0 {
		return
	}
	now := time.Now()
	t := ui.NewTable("ID", "STATE", "LABEL", ">AGE", "LEASE", ">ATTEMPT", ">FENCE", ">SIZE", ">KEPT FOR", "REQUEST")
	for i := range l.records {
		r := &l.records[i]
		id := r.ID.Short()
		if wide {
			id = r.ID.String()
		}
		t.Row(ui.Piece{Text: id}, stateOf(r), orNone(r.Label), age(r, now), lease(r),
			ui.Paint(ui.Plain, "%d", r.Attempt), ui.Paint(ui.Plain, "%d", r.Fence), ui.Piece{Text: ui.Bytes(int64(r.Size))}, validity(r), excerpt(r.Description, maxDescription))
	}
	c.out.Table(t)
}

// failed returns how a command ends after a listing that was cut short, and nil after one
// that was not.
func (c *session) failed(ctx context.Context, l *listing) error {
	if l.err == nil {
		return nil
	}
	if errors.Is(l.err, store.ErrInvalid) && l.scanned == 0 {
		return usage("--after has no cursor of this store: start the listing again without it (%w)", l.err)
	}
	after := ui.Noun(l.scanned, "record", "records")
	if l.total > l.scanned {
		after += " of about " + ui.Count(l.total)
	}
	if errors.Is(ctx.Err(), context.Canceled) {
		c.err.Line("interrupted after ", after, "; what is shown is incomplete")
		return ended(ExitInterrupted)
	}
	return storeFailed(ctx, "listing stopped after "+after, l.err)
}
