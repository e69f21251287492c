package ui

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"
)

// ErrNoTerminal says that there is no terminal for questions.
var ErrNoTerminal = errors.New("standard input is not a terminal")

// Prompt asks questions: on a stream, with answers from standard input.
type Prompt struct {
	In  io.Reader
	Out *Stream
}

// Terminal returns the terminal that answers come from, and nil if it is none.
func (p *Prompt) Terminal() *os.File {
	if f, ok := p.In.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		return f
	}
	return nil
}

// Line asks a person for one line.
func (p *Prompt) Line(ctx context.Context, question string) (string, error) {
	if p.Terminal() == nil {
		return "", ErrNoTerminal
	}
	p.Out.piece(question)
	return p.await(ctx, func() (string, error) {
		line, err := bufio.NewReader(p.In).ReadString('\n')
		if errors.Is(err, io.EOF) {
			return strings.TrimRight(line, "\r\n"), nil
		}
		return strings.TrimRight(line, "\r\n"), err
	})
}

// Secret asks a person for one line that the terminal does not show. Where standard input
// is not a terminal, it reads all of it, up to limit bytes, without its last line end.
func (p *Prompt) Secret(ctx context.Context, question string, limit int) (string, error) {
	f := p.Terminal()
	if f == nil {
		all, err := io.ReadAll(io.LimitReader(p.In, int64(limit)+3))
		text := strings.TrimSuffix(strings.TrimSuffix(string(all), "\n"), "\r")
		if err == nil && len(text) > limit {
			err = fmt.Errorf("standard input has more than %d bytes", limit)
		}
		return text, err
	}
	fd := int(f.Fd())
	before, err := term.GetState(fd)
	if err != nil {
		return "", err
	}
	asked := make(chan struct{})
	go func() {
		defer close(asked)
		awaitChange(ctx, fd, *before)
		p.Out.piece(question)
	}()
	text, err := p.await(ctx, func() (string, error) {
		text, err := term.ReadPassword(fd)
		return string(text), err
	})
	<-asked
	if ctx.Err() != nil { // the read goes on, and would leave the terminal without echo
		_ = term.Restore(fd, before)
	}
	p.Out.Line()
	return text, err
}

// awaitChange waits until the terminal has another state than before: it no longer echoes
// the input. A terminal without echo does not change, so the wait is 100 ms at most.
func awaitChange(ctx context.Context, fd int, before term.State) {
	ctx, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
	defer cancel()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for ctx.Err() == nil {
		if now, err := term.GetState(fd); err != nil || *now != before {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}

// await reads in the background, so that a signal ends the wait. An abandoned read ends
// with the process.
func (p *Prompt) await(ctx context.Context, read func() (string, error)) (string, error) {
	type answer struct {
		text string
		err  error
	}
	answers := make(chan answer, 1)
	go func() {
		text, err := read()
		answers <- answer{text, err}
	}()
	select {
	case a := <-answers:
		return a.text, a.err
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}
