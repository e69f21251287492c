package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/spf13/cobra"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/protocol"

	"github.com/reprise-go/reprise/cmd/reprise/internal/connect"
	"github.com/reprise-go/reprise/cmd/reprise/internal/top"
	"github.com/reprise-go/reprise/cmd/reprise/internal/ui"
)

// minEvery is the shortest time between two looks at the store.
const minEvery = 100 * time.Millisecond

// top is the command "top".
func (c *session) top() *cobra.Command {
	var (
		every    time.Duration
		auditLog string
	)
	cmd := &cobra.Command{
		Use:   "top",
		Short: "Watch the store, and resolve what is stuck",
		Long: `top shows what the store holds, with what needs a person first, and looks again
every few seconds. It sees what every process of the service writes. Replays and
waiting requests leave no trace in the store, so only the application counts
them.

A look reads all records in small steps, and rests between two steps for as long
as the last one took.

Keys: / filters by ID, state or label; enter opens a record; r resolves it, once
a part of its ID is typed; q quits.`,
		Args: cobra.NoArgs,
		RunE: c.withStore(func(ctx context.Context, store *connect.Store, _ []string) error {
			switch {
			case c.json:
				return usage("top has no JSON; use reprise list --json")
			case every < minEvery:
				return usage("--every is %v, want %v or more", every, minEvery)
			case c.out.Terminal() == nil || c.prompt.Terminal() == nil:
				return usage("top needs a terminal for input and output; use reprise stuck or reprise list instead")
			}
			return c.watch(ctx, store, every, auditLog)
		}),
	}
	cmd.Flags().DurationVar(&every, "every", 2*time.Second, "how long to wait between two looks at the store")
	cmd.Flags().StringVar(&auditLog, "audit-log", "", "append the audit log to this `file`; without one it is printed at the end")
	return cmd
}

// watch runs the screen.
func (c *session) watch(ctx context.Context, store *connect.Store, every time.Duration, auditLog string) error {
	log, err := c.openAudit(auditLog)
	if err != nil {
		return err
	}
	defer log.close()
	var printed lockedBuffer
	if auditLog == "" {
		log = newAudit(&printed)
	}
	w := watching{store: store, log: log}
	model := top.New(ctx, top.Options{
		Title: store.Name, Every: every, Styles: ui.NewStyles(c.out.Colour()),
		List: w.list, Latency: w.latency, Detail: w.detail, Prepare: w.prepare, Resolve: w.resolve,
	})
	_, err = tea.NewProgram(model, tea.WithContext(ctx), tea.WithoutSignalHandler(), tea.WithAltScreen(),
		tea.WithInput(c.streams.In), tea.WithOutput(c.out.Terminal())).Run()
	_, _ = c.err.Raw().Write(printed.Bytes())
	switch {
	case ctx.Err() != nil:
		return ended(ExitInterrupted)
	case err != nil:
		return unsafe("the terminal failed: %w", err)
	}
	return nil
}

// lockedBuffer is a buffer for writers of several goroutines.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

// Bytes returns what was written.
func (l *lockedBuffer) Bytes() []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Bytes()
}

// watching is what the screen asks of the store. Errors lose their passwords here.
type watching struct {
	store *connect.Store
	log   *audit
}

func (w *watching) list(ctx context.Context, q reprise.Query) (reprise.Page, error) {
	page, err := onePage(ctx, w.store, q)
	return page, w.redacted(err)
}

func (w *watching) latency(ctx context.Context) (time.Duration, error) {
	took, err := w.store.Latency(ctx)
	return took, w.redacted(err)
}

func (w *watching) redacted(err error) error {
	if err == nil {
		return nil
	}
	return errors.New(w.store.Redact(err.Error()))
}

// detail reads a record and describes it.
func (w *watching) detail(ctx context.Context, id reprise.ID) (reprise.Record, []string, error) {
	ctx, cancel := w.store.Bounded(ctx)
	defer cancel()
	r, err := w.store.Look.Inspect(ctx, id)
	if errors.Is(err, reprise.ErrNotFound) {
		return r, nil, errors.New("the record is gone: the next request with the key runs the operation")
	}
	if err != nil {
		return r, nil, w.redacted(err)
	}
	var lines []string
	for _, f := range factsOf(&r, time.Now()) {
		lines = append(lines, fmt.Sprintf("%-*s %s", factWidth, f.name, f.value.Text))
	}
	if a := answerOf(&r); a != nil {
		lines = append(lines, "", "Answer")
		lines = append(lines, plainAnswer(a)...)
	}
	lines = append(lines, "", "The client gets next: "+nextFor(&r))
	return r, lines, nil
}

// plainAnswer returns an answer without its body as text.
func plainAnswer(a *answer) []string {
	var lines []string
	for _, parts := range answerLines(a, false) {
		var b strings.Builder
		for _, part := range parts {
			if piece, ok := part.(ui.Piece); ok {
				part = piece.Text
			}
			b.WriteString(fmt.Sprint(part))
		}
		lines = append(lines, "  "+b.String())
	}
	return lines
}

// decisionOf returns a decision of the screen in full. A body that begins like JSON is
// sent as JSON.
func decisionOf(d top.Decision) (*decision, error) {
	full := &decision{forget: d.Forget, status: d.Status, retention: defaultRetention, reason: d.Reason}
	if d.Forget {
		return full, nil
	}
	response := protocol.Response{Status: d.Status, Body: []byte(d.Body)}
	if d.Body != "" {
		kind := "text/plain; charset=utf-8"
		if strings.HasPrefix(d.Body, "{") || strings.HasPrefix(d.Body, "[") {
			kind = "application/json"
		}
		response.Header = protocol.NewHeader(protocol.Field{Name: "Content-Type", Value: kind})
	}
	err := full.encode(response)
	return full, err
}

func (w *watching) prepare(d top.Decision) ([]string, error) {
	full, err := decisionOf(d)
	if err != nil {
		return nil, err
	}
	return append(plainAnswer(full.answer), d.Body), nil
}

// resolve carries a decision out, and reads the record back.
func (w *watching) resolve(ctx context.Context, r *reprise.Record, d top.Decision) (string, error) {
	full, err := decisionOf(d)
	if err != nil {
		return "", err
	}
	err = carryOut(context.WithoutCancel(ctx), w.store, r, full, w.log)
	switch {
	case errors.Is(err, reprise.ErrRecordChanged):
		return "", errors.New("the record changed since it was shown, so nothing was written")
	case err != nil:
		return "", w.redacted(err)
	case d.Forget:
		return "the record is forgotten: the next request with the key runs the operation", nil
	}
	return "the answer is kept: every retry gets it", nil
}
