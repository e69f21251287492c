package top

import (
	"cmp"
	"slices"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	reprise "github.com/reprise-go/reprise/core"
)

// The bounds of what is kept of a look.
const (
	pageSize    = 2000
	maxRows     = 5000 // records that need a person, or run
	keptAnswers = 100  // the latest completed records
)

// look is one pass over all records of the store.
type look struct {
	start   time.Time
	scanned int64
	total   int64 // an estimate; 0 is unknown

	running, lapsed, completed, unreadable int64

	oldest    time.Time // the first claim among those that run
	claimed   time.Time // the last claim, by the store's clock
	answered  time.Time // the last completion, by the store's clock
	newClaims int64     // claims since the look before
	answers   int64     // completions since the look before

	rows  []reprise.Record
	seen  map[reprise.ID]bool // of what is not completed: a listing may show a record twice
	after string
}

// summary is what a finished look says.
type summary struct {
	look
	took              time.Duration
	ended             time.Time
	newRate, doneRate float64 // of claims and completions, a second
	rated             bool    // there was a look before
}

// pageMsg is the next page of a look.
type pageMsg struct {
	look int
	page reprise.Page
	err  error
	took time.Duration
}

// latencyMsg is how long one read took.
type latencyMsg struct {
	took time.Duration
	err  error
}

// startMsg begins the next look.
type startMsg struct{ look int }

// nextPage reads a page after a pause, which leaves the store half of its time.
func (m *Model) nextPage(pause time.Duration) tea.Cmd {
	number, after := m.lookNumber, m.current.after
	return func() tea.Msg {
		if pause > 0 {
			select {
			case <-m.ctx.Done():
			case <-time.After(pause):
			}
		}
		start := time.Now()
		page, err := m.o.List(m.ctx, reprise.Query{After: after, Limit: pageSize})
		return pageMsg{look: number, page: page, err: err, took: time.Since(start)}
	}
}

func (m *Model) measure() tea.Cmd {
	return func() tea.Msg {
		took, err := m.o.Latency(m.ctx)
		return latencyMsg{took: took, err: err}
	}
}

// begin starts a look. What still comes of the one before is ignored.
func (m *Model) begin() tea.Cmd {
	m.lookNumber++
	m.current = look{start: m.now(), seen: make(map[reprise.ID]bool)}
	return tea.Batch(m.nextPage(0), m.measure())
}

// take adds a page to the look. It returns what comes next.
func (m *Model) take(msg pageMsg) tea.Cmd {
	if msg.look != m.lookNumber {
		return nil
	}
	if m.err = msg.err; msg.err != nil {
		return m.wait()
	}
	l := &m.current
	for i := range msg.page.Records {
		l.add(&msg.page.Records[i], &m.last)
	}
	l.trim()
	l.scanned += int64(msg.page.Scanned)
	l.total = msg.page.Total
	if l.after = msg.page.Next; l.after != "" {
		return m.nextPage(msg.took)
	}
	m.finish()
	return m.wait()
}

// wait begins the next look after a while.
func (m *Model) wait() tea.Cmd {
	number := m.lookNumber
	return tea.Tick(m.o.Every, func(time.Time) tea.Msg { return startMsg{look: number} })
}

// add counts a record. What is newer than everything that the look before saw, by the
// store's clock, is new.
func (l *look) add(r *reprise.Record, before *summary) {
	if l.seen[r.ID] {
		return
	}
	switch r.State {
	case reprise.StateRunning:
		l.running++
		if l.oldest.IsZero() || !r.ClaimedAt.IsZero() && r.ClaimedAt.Before(l.oldest) {
			l.oldest = r.ClaimedAt
		}
	case reprise.StateLapsed:
		l.lapsed++
	case reprise.StateUnreadable:
		l.unreadable++
	default:
		l.completed++
	}
	if r.State != reprise.StateCompleted {
		l.seen[r.ID] = true
	}
	l.claimed, l.answered = latest(l.claimed, r.ClaimedAt), latest(l.answered, r.CompletedAt)
	if r.ClaimedAt.After(before.claimed) {
		l.newClaims++
	}
	if r.CompletedAt.After(before.answered) {
		l.answers++
	}
	l.rows = append(l.rows, *r)
}

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// trim drops the rows beyond the bounds.
func (l *look) trim() {
	slices.SortStableFunc(l.rows, compareRows)
	answers := slices.IndexFunc(l.rows, func(r reprise.Record) bool { return r.State == reprise.StateCompleted })
	if answers < 0 {
		answers = len(l.rows)
	}
	end := min(len(l.rows), answers+keptAnswers)
	l.rows = slices.Concat(l.rows[:min(answers, maxRows)], l.rows[answers:end])
}

// compareRows puts what needs a person first, the oldest claims before the others, and
// the answers last, the latest first.
func compareRows(a, b reprise.Record) int {
	if d := cmp.Compare(rank(&a), rank(&b)); d != 0 {
		return d
	}
	d := a.ClaimedAt.Compare(b.ClaimedAt)
	if a.State == reprise.StateCompleted {
		d = b.CompletedAt.Compare(a.CompletedAt)
	}
	if d != 0 {
		return d
	}
	return slices.Compare(a.ID[:], b.ID[:])
}

func rank(r *reprise.Record) int {
	switch r.State {
	case reprise.StateLapsed:
		return 0
	case reprise.StateUnreadable:
		return 1
	case reprise.StateRunning:
		return 2
	default:
		return 3
	}
}

// finish makes the look the one that is shown.
func (m *Model) finish() {
	before := m.last
	m.last = summary{look: m.current, ended: m.now()}
	s := &m.last
	s.took = s.ended.Sub(s.start)
	if elapsed := s.start.Sub(before.start).Seconds(); !before.ended.IsZero() && elapsed > 0 {
		s.rated = true
		s.newRate, s.doneRate = float64(s.newClaims)/elapsed, float64(s.answers)/elapsed
	}
	// The latest records may be gone by now. They are not counted again if they come back.
	s.claimed, s.answered = latest(s.claimed, before.claimed), latest(s.answered, before.answered)
	m.filterRows()
}
