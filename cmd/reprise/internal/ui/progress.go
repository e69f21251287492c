package ui

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/reprise-go/reprise/cmd/reprise/internal/safe"
)

// Progress is a line at the bottom of a terminal that shows the progress of a command. On
// other outputs it is silent.
type Progress struct {
	stream *Stream
	start  time.Time
	next   time.Time
	shown  bool
}

// The line appears when a command takes longer than a person notices, and does not
// flicker.
const (
	progressDelay = 300 * time.Millisecond
	progressEvery = 100 * time.Millisecond
	barWidth      = 24
)

// Progress returns a progress line on s.
func (s *Stream) Progress() *Progress {
	now := time.Now()
	return &Progress{stream: s, start: now, next: now.Add(progressDelay)}
}

// Show shows that done of total items are done; a total of 0 is unknown. The text
// describes the items.
func (p *Progress) Show(done, total int64, format string, args ...any) {
	now := time.Now()
	if !p.stream.moves || now.Before(p.next) {
		return
	}
	p.next = now.Add(progressEvery)
	p.shown = true
	line := safe.Field(bar(done, total) + fmt.Sprintf(format, args...))
	if width := p.stream.Width(); width > 0 {
		line = truncate(line, width-1)
	}
	_, _ = io.WriteString(p.stream.raw, "\r\x1b[K"+line)
}

// Clear removes the line.
func (p *Progress) Clear() {
	if p.shown {
		_, _ = io.WriteString(p.stream.raw, "\r\x1b[K")
		p.shown = false
	}
}

// Elapsed returns how long the command has been at it.
func (p *Progress) Elapsed() time.Duration { return time.Since(p.start) }

// bar returns a bar with its percentage; empty for an unknown total.
func bar(done, total int64) string {
	if total <= 0 {
		return ""
	}
	done = min(max(done, 0), total) // the total is an estimate
	filled := int(done * barWidth / total)
	return fmt.Sprintf("[%s%s] %3d%%  ", strings.Repeat("=", filled), strings.Repeat(" ", barWidth-filled), done*100/total)
}

// truncate cuts a line to width columns. Progress lines are ASCII but for labels.
func truncate(line string, width int) string {
	runes := []rune(line)
	if len(runes) <= width {
		return line
	}
	return string(runes[:max(width, 0)])
}
