package top

import (
	"strconv"
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	reprise "github.com/reprise-go/reprise/core"
)

// confirmDigits is how many digits of the ID confirm a decision.
const confirmDigits = 8

// question is what a dialog asks.
type question uint8

const (
	askWhat    question = iota // forget or answer
	askStatus                  // of the answer
	askBody                    // of the answer
	askReason                  // for the audit log
	askConfirm                 // the digits of the ID
	askNothing                 // the store is at work
)

// dialog is a decision in the making.
type dialog struct {
	record   reprise.Record
	question question
	decision Decision
	input    string
	preview  []string
	problem  string // why the last input was refused
}

// resolvedMsg is what came of a decision.
type resolvedMsg struct {
	id   reprise.ID
	text string
	err  error
}

// ask begins a dialog about the open record.
func (m *Model) ask() {
	r := &m.detail.record
	switch {
	case !m.detail.loaded || m.detail.err != nil:
		return
	case r.State != reprise.StateLapsed && r.State != reprise.StateUnreadable:
		m.note = "only a lapsed or an unreadable record can be resolved; this one is " + r.State.String()
		return
	}
	m.note = ""
	m.dialog = dialog{record: *r}
	m.screen = asking
}

// answerKey handles a key in a dialog.
func (m *Model) answerKey(k tea.KeyMsg) tea.Cmd {
	d := &m.dialog
	switch {
	case d.question == askNothing:
		return nil
	case k.Type == tea.KeyEsc:
		m.screen, m.note = opened, "nothing was changed"
		return nil
	case d.question == askWhat:
		d.choose(k.String())
		return nil
	case k.Type != tea.KeyEnter:
		d.input, d.problem = edit(d.input, k), ""
		return nil
	}
	return m.entered(strings.TrimSpace(d.input))
}

// choose answers the first question.
func (d *dialog) choose(key string) {
	switch {
	case key == "f":
		d.decision.Forget = true
		d.preview = []string{"no record: the next request with the key runs the operation"}
		d.question = askReason
	case key == "a" && d.record.State == reprise.StateUnreadable:
		d.problem = "an unreadable record can only be forgotten"
	case key == "a":
		d.question = askStatus
	}
}

// entered takes a line.
func (m *Model) entered(line string) tea.Cmd {
	d := &m.dialog
	d.input, d.problem = "", ""
	switch d.question {
	case askStatus:
		status, err := strconv.Atoi(line)
		if err != nil {
			d.problem = "want a status such as 201"
			return nil
		}
		d.decision.Status, d.question = status, askBody
	case askBody:
		d.decision.Body = line
		preview, err := m.o.Prepare(d.decision)
		if err != nil {
			d.problem, d.question = err.Error(), askStatus
			return nil
		}
		d.preview, d.question = preview, askReason
	case askReason:
		d.decision.Reason, d.question = line, askConfirm
	case askConfirm:
		if line != d.record.ID.String()[:confirmDigits] {
			d.problem = "these are not the first digits of the ID; nothing was changed"
			return nil
		}
		d.question = askNothing
		return m.carryOut(d.record, d.decision)
	case askWhat, askNothing: // have no line
	}
	return nil
}

func (m *Model) carryOut(r reprise.Record, decision Decision) tea.Cmd {
	return func() tea.Msg {
		text, err := m.o.Resolve(m.ctx, &r, decision)
		return resolvedMsg{id: r.ID, text: text, err: err}
	}
}

// resolved shows what came of a decision, and reads the record again.
func (m *Model) resolved(msg resolvedMsg) tea.Cmd {
	m.screen, m.note = opened, msg.text
	if msg.err != nil {
		m.note = msg.err.Error()
	}
	return tea.Batch(m.read(msg.id), m.begin())
}
