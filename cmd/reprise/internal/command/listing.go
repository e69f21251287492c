package command

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/reprise-go/reprise/core/operate"
	"github.com/reprise-go/reprise/core/store"

	"github.com/reprise-go/reprise/cmd/reprise/internal/connect"
	"github.com/reprise-go/reprise/cmd/reprise/internal/ui"
)

// listing is the result of a scan: of the records found so far, those that come first in
// the order of sortByNeed.
type listing struct {
	records []store.Record
	left    int // how many were found and are not among them, because of the limit
	waiting int // of those left out, how many wait for a retry only
	scanned int64
	total   int64 // an estimate; 0 is unknown
	over    bool  // all records were looked at

	elsewhere []string // other namespaces that have records, if this one has none
	err       error    // why it stopped
}

// pageSize is the number of records of one call: small enough that an error or an
// interrupt loses little.
const pageSize = 1000

// selection says which records a scan looks for.
type selection struct {
	query   store.Query
	limit   int  // records to keep; 0 is all
	persons bool // keep only those that need a person, and count those that wait for a retry
	answers bool // read the answers of completed records, and keep those that cannot be read
}

// scan looks at all records, and shows how far it is. It keeps up to the limit, and
// holds little more in memory. A record that two pages show is kept once.
func scan(ctx context.Context, st *connect.Store, s *selection, progress *ui.Progress) *listing {
	defer progress.Clear()
	l, q := new(listing), s.query
	if q.Limit = pageSize; s.answers {
		q.States |= store.States(store.StateCompleted)
	}
	for {
		page, err := st.Look.List(ctx, q)
		for i := 0; err == nil && i < len(page.Records); i++ {
			var keep bool
			if keep, err = l.wants(ctx, st, s, &page.Records[i]); keep {
				l.records = append(l.records, page.Records[i])
			}
		}
		if s.limit > 0 && len(l.records) > 2*s.limit+pageSize {
			l.compact(s.limit)
		}
		l.scanned += int64(page.Scanned)
		if l.total = max(page.Total, l.scanned); page.Total == 0 {
			l.total = 0
		}
		q.After = page.Next
		if l.over = err == nil && q.After == ""; l.over || err != nil {
			if l.err = err; l.over && l.scanned == 0 {
				l.elsewhere = st.Elsewhere(ctx)
			}
			l.compact(s.limit)
			return l
		}
		progress.Show(l.scanned, l.total, "%s looked at, %s found", ui.Count(l.scanned), ui.Count(int64(len(l.records)+l.left)))
	}
}

// wants reports whether the scan keeps a record.
func (l *listing) wants(ctx context.Context, st *connect.Store, s *selection, r *store.Record) (bool, error) {
	switch {
	case s.answers && r.State == store.StateCompleted:
		return unreadableAnswer(ctx, st, r, s.query.States.Has(store.StateCompleted))
	case s.persons && operate.NeedOf(r) == operate.NeedsRetry:
		l.waiting++
		return false, nil
	default:
		return true, nil
	}
}

// unreadableAnswer reads the answer of a completed record, and notes that a retry cannot
// get it: in its Reason for people, and by the first byte of the answer, of which no
// release can make more, for the table of needs. It can check only the form of a sealed
// answer.
func unreadableAnswer(ctx context.Context, st *connect.Store, r *store.Record, other bool) (bool, error) {
	whole, err := st.Look.Inspect(ctx, r.ID)
	switch {
	case errors.Is(err, store.ErrNotFound) || err == nil && whole.State != store.StateCompleted:
		return false, nil // it ended meanwhile
	case err != nil:
		return false, err
	case operate.NeedOf(&whole) == operate.NeedsPerson:
		r.Reason, r.Payload = unreadable, bytes.Clone(whole.Payload[:min(1, len(whole.Payload))])
		return true, nil
	default:
		return other, nil
	}
}

// unreadable is the Reason of a completed record whose answer cannot be read. Stores give
// a completed record none.
const unreadable = "its answer cannot be read"

// compact keeps the first records, without duplicates.
func (l *listing) compact(limit int) {
	seen := make(map[store.ID]bool, len(l.records))
	l.records = slices.DeleteFunc(l.records, func(r store.Record) bool {
		again := seen[r.ID]
		seen[r.ID] = true
		return again
	})
	sortByNeed(l.records)
	if limit > 0 && len(l.records) > limit {
		l.left += len(l.records) - limit
		l.records = slices.Delete(l.records, limit, len(l.records))
	}
}

// sortByNeed sorts records that need a person first, then those that wait for a retry,
// running ones, each with the oldest claim first, and the latest completed. Those whose
// claim is not known follow the others of their kind.
func sortByNeed(list []store.Record) {
	rank := func(r *store.Record) int {
		switch n := operate.NeedOf(r); {
		case n == operate.NeedsNone && r.State.WasCompleted():
			return 2*int(n) + 2
		case r.ClaimedAt.IsZero():
			return 2*int(n) + 1
		default:
			return 2 * int(n)
		}
	}
	slices.SortStableFunc(list, func(a, b store.Record) int {
		at := cmp.Or(a.ClaimedAt.Compare(b.ClaimedAt), cmp.Compare(a.Lease, b.Lease))
		if operate.NeedOf(&a) == operate.NeedsNone && a.State.WasCompleted() {
			at = b.CompletedAt.Compare(a.CompletedAt)
		}
		return cmp.Or(cmp.Compare(rank(&a), rank(&b)), at)
	})
}

// listingJSON is a listing in the output for programs, behind its records.
type listingJSON struct {
	Left     int   `json:"not_shown"`                // found, and left out because of the limit
	Waiting  int   `json:"waiting_for_retry"`        // found by stuck, and left out because a retry takes them over
	Scanned  int64 `json:"scanned"`                  // records looked at
	Total    int64 `json:"total_estimate,omitempty"` // records to look at
	Complete bool  `json:"complete"`                 // all were looked at

	Elsewhere []string `json:"other_namespaces,omitempty"` // that have records, if this one has none
}

// show prints a listing, and says what it left out.
func (c *session) show(l *listing, wide bool) {
	if c.json {
		writeListing(c.out.Raw(), l)
		return
	}
	if len(l.records) == 0 {
		return
	}
	now := time.Now()
	t := ui.NewTable("ID", "STATE", "NEEDS", "~LABEL", ">AGE", "~LEASE", "?>ATTEMPT", "?>FENCE", "?>SIZE", "?>KEPT FOR", "~REQUEST")
	wide = wide || c.out.Width() == 0
	for i := range l.records {
		r := &l.records[i]
		id := r.ID.Short()
		if wide {
			id = r.ID.String()
		}
		t.Row(ui.Piece{Text: id}, stateOf(r), orNone(operate.NeedOf(r).String()), orNone(r.Label), age(r, now), lease(r),
			ui.Paint(ui.Plain, "%d", r.Attempt), ui.Paint(ui.Plain, "%d", r.Fence), ui.Piece{Text: ui.Bytes(int64(r.Size))}, validity(r), orNone(r.Description))
	}
	c.out.Table(t, wide)
	if l.left > 0 {
		c.say(fmt.Sprintf("these are the first %d; about %d more were found: --limit 0 shows all", len(l.records), l.left))
	}
}

// writeListing writes a listing for programs, record by record.
func writeListing(to io.Writer, l *listing) {
	w := bufio.NewWriter(to)
	_, _ = w.WriteString(`{
  "records": [`)
	var separator, end string
	for i := range l.records {
		_, _ = w.WriteString(separator + "\n    ")
		_, _ = w.Write(encode(newRecordJSON(&l.records[i]), "    "))
		separator, end = ",", "\n  "
	}
	rest := encode(listingJSON{l.left, l.waiting, l.scanned, l.total, l.over, l.elsewhere}, "")
	_, _ = w.WriteString(end + "],")
	_, _ = w.Write(append(rest[1:], '\n')) // without the brace that is written
	_ = w.Flush()                          // the stream remembers an error
}

// failed returns how a command ends after a listing that was cut short or looked at
// nothing, and nil after any other.
func (c *session) failed(ctx context.Context, l *listing) error {
	switch {
	case l.err == nil && l.scanned > 0:
		return nil
	case l.err == nil:
		return unsafe("warning: there is no record at all in %s, so nothing was looked at; %s", c.store.Name, mistaken(c.store, l.elsewhere))
	}
	after := ui.Noun(l.scanned, "record", "records")
	if l.total > l.scanned {
		after += " of about " + ui.Count(l.total)
	}
	if errors.Is(ctx.Err(), context.Canceled) {
		return &failure{code: ExitInterrupted, err: fmt.Errorf("interrupted after %s; what is shown is incomplete", after)}
	}
	return storeFailed(ctx, "listing stopped after "+after, l.err)
}
