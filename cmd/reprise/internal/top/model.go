// Package top is the screen of "reprise top": what the store holds, kept up to date, with
// what needs a person first.
package top

import (
	"context"
	"strings"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	reprise "github.com/reprise-go/reprise/core"

	"github.com/reprise-go/reprise/cmd/reprise/internal/ui"
)

// Options say what the screen shows, and what its keys do. Everything that they return
// may come from a record: the screen makes it harmless.
type Options struct {
	Title  string
	Every  time.Duration // between two looks at the store
	Styles ui.Styles

	// List and Latency read the store.
	List    func(ctx context.Context, q reprise.Query) (reprise.Page, error)
	Latency func(ctx context.Context) (time.Duration, error)

	// Detail reads a record, and returns what there is to say about it.
	Detail func(ctx context.Context, id reprise.ID) (reprise.Record, []string, error)

	// Prepare checks an answer, and returns what a client would get.
	Prepare func(d Decision) ([]string, error)

	// Resolve carries a decision out, and returns what came of it.
	Resolve func(ctx context.Context, r *reprise.Record, d Decision) (string, error)
}

// Decision is what a person decided about a record.
type Decision struct {
	Forget bool
	Status int    // of the answer, unless the record is forgotten
	Body   string // of the answer
	Reason string
}

// screen is what is on the screen.
type screen uint8

const (
	listing screen = iota
	opened         // one record
	asking         // a question about the record that is to be resolved
)

// Model is the state of the screen, for bubbletea.
type Model struct {
	ctx context.Context //nolint:containedctx // bubbletea's functions take none
	o   Options
	now func() time.Time

	width, height int
	screen        screen

	lookNumber int
	current    look    // that goes on
	last       summary // that ended
	latency    latencyMsg
	err        error // of the store

	filter   string
	typing   bool             // the filter
	rows     []reprise.Record // that match it
	selected int
	first    int        // the first row on the screen
	chosen   reprise.ID // of the selected row

	detail detail
	dialog dialog
	note   string // the last thing that happened
}

// detail is the record that is open.
type detail struct {
	id     reprise.ID
	record reprise.Record
	lines  []string
	err    error
	loaded bool
	first  int // the first line on the screen
}

// detailMsg is a record that was read.
type detailMsg detail

// New returns the model. Its functions are called with ctx.
func New(ctx context.Context, o Options) *Model {
	return &Model{ctx: ctx, o: o, now: time.Now}
}

// Init implements tea.Model.
func (m *Model) Init() tea.Cmd { return m.begin() }

// Update implements tea.Model.
func (m *Model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	next := m.update(msg)
	return m, next
}

func (m *Model) update(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
		m.scroll()
	case pageMsg:
		return m.take(msg)
	case latencyMsg:
		m.latency = msg
	case startMsg:
		if msg.look == m.lookNumber {
			return m.begin()
		}
	case detailMsg:
		if msg.id == m.detail.id {
			msg.first = m.detail.first
			m.detail = detail(msg)
		}
	case resolvedMsg:
		return m.resolved(msg)
	case tea.KeyMsg:
		return m.key(msg)
	}
	return nil
}

// key handles a key. What is typed fast, or pasted, comes as one: each of its characters
// is a key of its own.
func (m *Model) key(k tea.KeyMsg) tea.Cmd {
	if k.Type == tea.KeyRunes && len(k.Runes) > 1 {
		var commands []tea.Cmd
		for _, r := range k.Runes {
			commands = append(commands, m.key(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune{r}}))
		}
		return tea.Batch(commands...)
	}
	switch {
	case k.Type == tea.KeyCtrlC:
		return tea.Quit
	case m.screen == asking:
		return m.answerKey(k)
	case m.screen == opened:
		return m.openedKey(k)
	case m.typing:
		m.filterKey(k)
		return nil
	}
	return m.listKey(k)
}

func (m *Model) listKey(k tea.KeyMsg) tea.Cmd {
	switch k.String() {
	case "q":
		return tea.Quit
	case "/":
		m.typing = true
	case "esc":
		m.filter = ""
		m.filterRows()
	case "up", "k":
		m.move(-1)
	case "down", "j":
		m.move(1)
	case "pgup":
		m.move(-m.room())
	case "pgdown", " ":
		m.move(m.room())
	case "home", "g":
		m.move(-len(m.rows))
	case "end", "G":
		m.move(len(m.rows))
	case "enter":
		return m.open()
	}
	return nil
}

func (m *Model) openedKey(k tea.KeyMsg) tea.Cmd {
	switch k.String() {
	case "q", "esc", "backspace", "left":
		m.screen = listing
	case "up", "k":
		m.detail.first = max(m.detail.first-1, 0)
	case "down", "j":
		m.detail.first = min(m.detail.first+1, max(len(m.detail.lines)-1, 0))
	case "enter":
		return m.read(m.detail.id)
	case "r":
		m.ask()
	}
	return nil
}

// filterKey edits the filter.
func (m *Model) filterKey(k tea.KeyMsg) {
	switch k.Type {
	case tea.KeyEnter:
		m.typing = false
	case tea.KeyEsc:
		m.typing, m.filter = false, ""
	default:
		m.filter = edit(m.filter, k)
	}
	m.filterRows()
}

// maxInput bounds what is typed into a line.
const maxInput = 4096

// edit returns text after a key.
func edit(text string, k tea.KeyMsg) string {
	switch k.Type { //nolint:exhaustive // the others type nothing
	case tea.KeyBackspace:
		if runes := []rune(text); len(runes) > 0 {
			return string(runes[:len(runes)-1])
		}
	case tea.KeyCtrlU:
		return ""
	case tea.KeyRunes, tea.KeySpace:
		if len(text) < maxInput {
			return text + string(k.Runes)
		}
	}
	return text
}

// filterRows selects the rows that the filter matches: by ID, state or label. The
// selection follows its record.
func (m *Model) filterRows() {
	m.rows = nil
	want := strings.ToLower(m.filter)
	for i := range m.last.rows {
		r := &m.last.rows[i]
		if strings.HasPrefix(r.ID.String(), want) || strings.HasPrefix(r.State.String(), want) || strings.Contains(strings.ToLower(r.Label), want) {
			m.rows = append(m.rows, *r)
		}
	}
	m.selected = min(m.selected, max(len(m.rows)-1, 0))
	for i := range m.rows {
		if m.rows[i].ID == m.chosen {
			m.selected = i
		}
	}
	m.scroll()
}

// move moves the selection.
func (m *Model) move(by int) {
	m.selected = max(min(m.selected+by, len(m.rows)-1), 0)
	if len(m.rows) > 0 {
		m.chosen = m.rows[m.selected].ID
	}
	m.scroll()
}

// scroll brings the selected row onto the screen.
func (m *Model) scroll() {
	m.first = max(min(m.first, m.selected), m.selected-m.room()+1, 0)
}

// open opens the selected record.
func (m *Model) open() tea.Cmd {
	if len(m.rows) == 0 {
		return nil
	}
	r := m.rows[m.selected]
	m.chosen, m.screen, m.note = r.ID, opened, ""
	m.detail = detail{id: r.ID}
	return m.read(r.ID)
}

// read reads a record.
func (m *Model) read(id reprise.ID) tea.Cmd {
	return func() tea.Msg {
		r, lines, err := m.o.Detail(m.ctx, id)
		return detailMsg{id: id, record: r, lines: lines, err: err, loaded: true}
	}
}
