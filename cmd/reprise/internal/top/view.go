package top

import (
	"fmt"
	"strings"

	"github.com/charmbracelet/lipgloss"

	reprise "github.com/reprise-go/reprise/core"

	"github.com/reprise-go/reprise/cmd/reprise/internal/safe"
	"github.com/reprise-go/reprise/cmd/reprise/internal/ui"
)

// The smallest terminal that the screen fits into, and the lines of the list that are not
// rows.
const (
	minWidth   = 60
	minHeight  = 12
	otherLines = 7
)

// room returns how many rows fit onto the screen.
func (m *Model) room() int { return max(m.height-otherLines, 1) }

// View implements tea.Model.
func (m *Model) View() string {
	switch {
	case m.width == 0:
		return ""
	case m.width < minWidth || m.height < minHeight:
		return m.fit([]string{
			fmt.Sprintf("The terminal is %d×%d;", m.width, m.height), fmt.Sprintf("top needs %d×%d.", minWidth, minHeight), "q quits.",
		})
	case m.screen == opened:
		return m.fit(m.viewOpened())
	case m.screen == asking:
		return m.fit(m.viewDialog())
	}
	return m.fit(m.viewList())
}

// fit cuts the lines to the screen. Of what a terminal obeys, only colours are left,
// whatever the lines contain.
func (m *Model) fit(lines []string) string {
	lines = lines[:min(len(lines), max(m.height, 1))]
	cut := lipgloss.NewStyle().MaxWidth(m.width)
	for i, line := range lines {
		lines[i] = cut.Render(safe.Screen(line))
	}
	return strings.Join(lines, "\n")
}

// fill appends empty lines up to the foot, which is the last line.
func (m *Model) fill(lines []string, foot string) []string {
	for len(lines) < m.height-1 {
		lines = append(lines, "")
	}
	return append(lines[:m.height-1], m.line(ui.Piece{Style: ui.Faint, Text: foot}))
}

// line joins pieces, and everything else as harmless text.
func (m *Model) line(parts ...any) string {
	var b strings.Builder
	for _, part := range parts {
		piece, ok := part.(ui.Piece)
		if !ok {
			piece.Text = fmt.Sprint(part)
		}
		b.WriteString(m.o.Styles.Render(piece))
	}
	return b.String()
}

// wrap returns text in as many lines as it needs, broken between words where it can be.
func (m *Model) wrap(style ui.Style, text string) []string {
	rest := []rune(safe.Field(text))
	if len(rest) == 0 {
		return []string{""}
	}
	var lines []string
	for len(rest) > 0 {
		end := min(len(rest), m.width)
		for lipgloss.Width(string(rest[:end])) > m.width { // wide characters
			end--
		}
		if space := strings.LastIndexByte(string(rest[:end]), ' '); end < len(rest) && space > 0 {
			end = len([]rune(string(rest[:end])[:space]))
		}
		lines = append(lines, m.line(ui.Piece{Style: style, Text: string(rest[:end])}))
		rest = rest[end:]
		if len(rest) > 0 && rest[0] == ' ' {
			rest = rest[1:]
		}
	}
	return lines
}

func strong(text string) ui.Piece { return ui.Piece{Style: ui.Strong, Text: text} }

// alarm paints a number that is bad unless it is zero.
func alarm(n int64) ui.Piece {
	if n > 0 {
		return ui.Piece{Style: ui.Bad, Text: ui.Count(n)}
	}
	return ui.Piece{Style: ui.Good, Text: "0"}
}

// viewHead shows the numbers.
func (m *Model) viewHead() []string {
	s, dash := &m.last, strong("-")
	running, completed, stuck, unreadable, claims, answers, oldest, read := dash, dash, dash, dash, dash, dash, dash, dash
	if !s.ended.IsZero() {
		running, completed, stuck, unreadable = strong(ui.Count(s.running)), strong(ui.Count(s.completed)), alarm(s.lapsed), alarm(s.unreadable)
		if !s.oldest.IsZero() {
			oldest = strong(ui.Duration(max(m.now().Sub(s.oldest), 0)))
		}
	}
	if s.rated {
		claims, answers = strong(fmt.Sprintf("%.1f/s", s.newRate)), strong(fmt.Sprintf("%.1f/s", s.doneRate))
	}
	switch {
	case m.latency.err != nil:
		read = ui.Piece{Style: ui.Bad, Text: "failed"}
	case m.latency.took > 0:
		read = strong(ui.Duration(m.latency.took))
	}
	return []string{
		m.line(strong("reprise top  "), m.o.Title),
		m.line("running ", running, "  stuck ", stuck, "  unreadable ", unreadable, "  answers ", completed),
		m.line("new ", claims, "  answered ", answers, "  oldest running ", oldest, "  read ", read),
		m.line(m.viewProgress()),
	}
}

// viewProgress says how old the numbers are.
func (m *Model) viewProgress() ui.Piece {
	s := &m.last
	switch {
	case m.err != nil:
		return ui.Piece{Style: ui.Bad, Text: "the store does not answer: " + m.err.Error()}
	case s.ended.IsZero() && m.current.total > 0:
		return ui.Paint(ui.Faint, "looking: %s of about %s records", ui.Count(m.current.scanned), ui.Count(m.current.total))
	case s.ended.IsZero():
		return ui.Paint(ui.Faint, "looking: %s records", ui.Count(m.current.scanned))
	}
	return ui.Paint(ui.Faint, "%s in %s, at %s. The application counts replays and waiting requests.",
		ui.Noun(s.scanned, "record", "records"), ui.Duration(s.took), s.ended.Format("15:04:05"))
}

// viewList shows the records.
func (m *Model) viewList() []string {
	lines := m.viewHead()
	switch {
	case m.typing:
		lines = append(lines, m.line(strong("filter: "), m.filter, "_"))
	case m.filter != "":
		lines = append(lines, m.line("filter: ", m.filter, ui.Paint(ui.Faint, "  (esc shows all)")))
	default:
		lines = append(lines, "")
	}
	t := ui.NewTable(" ", "ID", "STATE", "LABEL", ">AGE", "LEASE", ">ATTEMPT", ">SIZE")
	for i := m.first; i < min(m.first+m.room(), len(m.rows)); i++ {
		t.Row(m.row(&m.rows[i], i == m.selected)...)
	}
	lines = append(lines, t.Lines(&m.o.Styles)...)
	foot := "q quit  / filter  ↑↓ move  enter open"
	if len(m.rows) == 0 && !m.last.ended.IsZero() {
		foot = "no record matches; " + foot
	}
	return m.fill(lines, foot)
}

// row shows a record.
func (m *Model) row(r *reprise.Record, selected bool) []ui.Piece {
	mark, id, state := ui.Piece{Text: " "}, ui.Piece{Text: r.ID.Short()}, ui.Piece{Text: r.State.String()}
	if selected {
		mark, id = strong(">"), strong(r.ID.Short())
	}
	lease, age, label := "-", "-", r.Label
	switch r.State {
	case reprise.StateLapsed:
		state.Style, lease = ui.Bad, "over for "+ui.Duration(-r.Lease)
	case reprise.StateUnreadable:
		state.Style = ui.Bad
	case reprise.StateRunning:
		state.Style, lease = ui.Warn, ui.Duration(r.Lease)+" left"
	case reprise.StateCompleted:
		state.Style = ui.Good
	}
	if !r.ClaimedAt.IsZero() {
		age = ui.Duration(max(m.now().Sub(r.ClaimedAt), 0))
	}
	if label == "" {
		label = "-"
	}
	return []ui.Piece{
		mark, id, state, {Text: label}, {Text: age}, {Text: lease}, ui.Paint(ui.Plain, "%d", r.Attempt), {Text: ui.Bytes(int64(r.Size))},
	}
}

// viewOpened shows one record.
func (m *Model) viewOpened() []string {
	lines := []string{m.line(strong("reprise top  "), "record ", m.detail.id.Short())}
	lines = append(lines, m.wrap(ui.Warn, m.note)...)
	switch {
	case m.detail.err != nil:
		lines = append(lines, m.wrap(ui.Bad, m.detail.err.Error())...)
	case !m.detail.loaded:
		lines = append(lines, m.line(ui.Piece{Style: ui.Faint, Text: "reading"}))
	default:
		for _, line := range m.detail.lines[min(m.detail.first, len(m.detail.lines)):] {
			lines = append(lines, m.wrap(ui.Plain, line)...)
		}
	}
	return m.fill(lines, "esc back  enter read again  r resolve  ↑↓ scroll")
}

// viewDialog shows a question.
func (m *Model) viewDialog() []string {
	d := &m.dialog
	lines := []string{
		m.line(strong("resolve  "), d.record.ID.String()),
		m.line("state ", d.record.State, "  label ", d.record.Label, "  attempt ", d.record.Attempt, "  fence ", d.record.Fence),
		"",
	}
	if len(d.preview) > 0 {
		lines = append(lines, m.line(strong("After")))
		for _, line := range d.preview[:min(len(d.preview), max(m.height-10, 1))] { // the question stays on the screen
			lines = append(lines, m.line("  ", line))
		}
		lines = append(lines, "")
	}
	ask := func(text string) { lines = append(lines, m.line(strong(text), d.input, "_")) }
	switch d.question {
	case askWhat:
		lines = append(lines, m.line("Find out first what the last attempt did."),
			m.line(strong("f"), "  it did nothing: forget the record; the next request runs"),
			m.line(strong("a"), "  it did its work: keep an answer, which retries get"))
	case askStatus:
		ask("Status of the answer: ")
	case askBody:
		ask("Body, on one line (empty for none): ")
	case askReason:
		ask("Reason, for the audit log: ")
	case askConfirm:
		ask("Type " + d.record.ID.String()[:confirmDigits] + " to do it: ")
	case askNothing:
		lines = append(lines, "writing")
	}
	if d.problem != "" {
		lines = append(lines, m.wrap(ui.Bad, d.problem)...)
	}
	return m.fill(lines, "esc changes nothing")
}
