package top

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	reprise "github.com/reprise-go/reprise/core"

	"github.com/reprise-go/reprise/cmd/reprise/internal/safe"
	"github.com/reprise-go/reprise/cmd/reprise/internal/ui"
)

var epoch = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// setup returns a screen of 80 columns and 20 lines over records, after one look.
func setup(t testing.TB, records ...reprise.Record) *Model {
	t.Helper()
	m := New(t.Context(), Options{
		Title: "store", Every: time.Second, Styles: ui.NewStyles(true),
		List: func(context.Context, reprise.Query) (reprise.Page, error) {
			return reprise.Page{Records: records, Scanned: len(records)}, nil
		},
		Latency: func(context.Context) (time.Duration, error) { return time.Millisecond, nil },
		Detail: func(_ context.Context, id reprise.ID) (reprise.Record, []string, error) {
			for _, r := range records {
				if r.ID == id {
					return r, []string{"label " + r.Label}, nil
				}
			}
			return reprise.Record{}, nil, errors.New("gone")
		},
		Prepare: func(d Decision) ([]string, error) { return []string{d.Body}, nil },
		Resolve: func(context.Context, *reprise.Record, Decision) (string, error) { return "done", nil },
	})
	m.now = func() time.Time { return epoch }
	m.Update(tea.WindowSizeMsg{Width: 80, Height: 20})
	m.begin()
	m.page(records...)
	return m
}

// page ends the look that goes on with these records.
func (m *Model) page(records ...reprise.Record) {
	m.Update(pageMsg{look: m.lookNumber, page: reprise.Page{Records: records, Scanned: len(records)}})
}

// typeKeys types text, and runs what each key starts.
func (m *Model) typeKeys(keys ...tea.KeyMsg) {
	for _, k := range keys {
		_, command := m.Update(k)
		if command == nil {
			continue
		}
		if msg := command(); msg != nil {
			m.Update(msg)
		}
	}
}

func text(s string) tea.KeyMsg { return tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune(s)} }

var (
	enter  = tea.KeyMsg{Type: tea.KeyEnter}
	escape = tea.KeyMsg{Type: tea.KeyEsc}
)

func lapsed(n byte) reprise.Record {
	return reprise.Record{ID: reprise.ID{n, 0xab}, State: reprise.StateLapsed, Label: "refunds", Attempt: 1, Fence: 7, ClaimedAt: epoch.Add(-time.Hour), Lease: -time.Minute}
}

func answered(n byte, at time.Time) reprise.Record {
	return reprise.Record{ID: reprise.ID{n}, State: reprise.StateCompleted, ClaimedAt: at.Add(-time.Second), CompletedAt: at}
}

func TestRatesAreWhatTwoLooksDifferBy(t *testing.T) {
	t.Parallel()
	m := setup(t, answered(1, epoch), lapsed(2))
	if m.last.rated {
		t.Error("one look has a rate")
	}
	m.now = func() time.Time { return epoch.Add(4 * time.Second) }
	m.begin()
	m.page(answered(1, epoch), lapsed(2), answered(3, epoch.Add(2*time.Second)), answered(4, epoch.Add(3*time.Second)))
	if s := &m.last; s.doneRate != 0.5 || s.newRate != 0.5 || s.completed != 3 || s.lapsed != 1 {
		t.Errorf("%v answers and %v claims a second, %d answers, %d lapsed", s.doneRate, s.newRate, s.completed, s.lapsed)
	}
	// A record that is gone and comes back in a page is not new.
	m.now = func() time.Time { return epoch.Add(8 * time.Second) }
	m.begin()
	m.page(lapsed(2))
	m.begin()
	m.page(lapsed(2), answered(4, epoch.Add(3*time.Second)))
	if s := &m.last; s.doneRate != 0 {
		t.Errorf("%v answers a second, want none", s.doneRate)
	}
}

func TestTheSelectionFollowsItsRecord(t *testing.T) {
	t.Parallel()
	m := setup(t, lapsed(2), lapsed(3), lapsed(4))
	m.typeKeys(tea.KeyMsg{Type: tea.KeyDown})
	if got := m.rows[m.selected].ID; got != lapsed(3).ID {
		t.Fatalf("selected %s", got.Short())
	}
	m.begin()
	m.page(lapsed(1), lapsed(2), lapsed(3), lapsed(4))
	if got := m.rows[m.selected].ID; got != lapsed(3).ID {
		t.Errorf("selected %s after a new record came", got.Short())
	}
	m.typeKeys(text("/nothing"), enter)
	if len(m.rows) != 0 || !strings.Contains(m.View(), "no record matches") {
		t.Errorf("%d rows", len(m.rows))
	}
	m.typeKeys(enter) // opens nothing
	if m.screen != listing {
		t.Error("a record is open")
	}
}

func TestNothingIsResolvedWithoutTheDigits(t *testing.T) {
	t.Parallel()
	r := lapsed(2)
	m := setup(t, r)
	resolved := 0
	m.o.Resolve = func(_ context.Context, got *reprise.Record, d Decision) (string, error) {
		if got.Fence != r.Fence || !d.Forget || d.Reason != "why" {
			t.Errorf("%+v, %+v", got, d)
		}
		resolved++
		return "done", nil
	}
	m.typeKeys(enter, text("r"), text("f"), text("why"), enter, text("wrong"), enter)
	if resolved != 0 || m.screen != asking {
		t.Fatalf("%d resolved, screen %d", resolved, m.screen)
	}
	m.typeKeys(escape)
	if m.screen != opened || m.note != "nothing was changed" {
		t.Errorf("screen %d, note %q", m.screen, m.note)
	}
	m.typeKeys(text("r"), text("f"), text("why"), enter, text(r.ID.String()[:8]), enter)
	if resolved != 1 || m.screen != opened || m.note != "done" {
		t.Errorf("%d resolved, screen %d, note %q", resolved, m.screen, m.note)
	}
}

func TestSmallTerminals(t *testing.T) {
	t.Parallel()
	m := setup(t, lapsed(2))
	for _, size := range []tea.WindowSizeMsg{{Width: 1, Height: 1}, {Width: 59, Height: 40}, {Width: 200, Height: 11}, {Width: 60, Height: 12}, {Width: 500, Height: 100}} {
		m.Update(size)
		for screen := listing; screen <= asking; screen++ {
			m.screen = screen
			view := m.View()
			if lines := strings.Count(view, "\n") + 1; lines > size.Height {
				t.Errorf("%v, screen %d: %d lines", size, screen, lines)
			}
			for line := range strings.Lines(view) {
				if width := len([]rune(safe.Text(strip(line)))) - 1; width > size.Width {
					t.Errorf("%v, screen %d: %d columns in %q", size, screen, width, line)
				}
			}
		}
	}
}

// strip takes the colours out of a view.
func strip(view string) string {
	for {
		before, rest, found := strings.Cut(view, "\x1b[")
		if !found {
			return view
		}
		_, after, _ := strings.Cut(rest, "m")
		view = before + after
	}
}

// FuzzView: whatever a record contains and a person types, only colours are left of what
// a terminal obeys.
func FuzzView(f *testing.F) {
	f.Add("\x1b]0;x\x07\u202e\x9b", "/r\x1b[2J", uint8(80), uint8(20))
	f.Add("label", "ra1\x00", uint8(3), uint8(3))
	f.Fuzz(func(t *testing.T, content, keys string, width, height uint8) {
		r := lapsed(2)
		r.Label = content
		m := setup(t, r)
		m.o.Title = content
		m.o.Prepare = func(Decision) ([]string, error) { return nil, errors.New(content) }
		m.Update(tea.WindowSizeMsg{Width: int(width), Height: int(height)})
		m.typeKeys(enter)
		for _, k := range keys {
			m.typeKeys(text(string(k)))
			if k == '\n' {
				m.typeKeys(enter)
			}
			if view := m.View(); safe.Screen(view) != view {
				t.Fatalf("the view has something that a terminal obeys: %q", view)
			}
		}
		m.Update(pageMsg{look: m.lookNumber, err: errors.New(content)})
		for screen := listing; screen <= asking; screen++ {
			m.screen = screen
			if view := m.View(); safe.Screen(view) != view || !safe.Clean(strip(view)) {
				t.Fatalf("the view has something that a terminal obeys: %q", view)
			}
		}
	})
}
