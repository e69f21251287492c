package command

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/reprise-go/reprise/core/store"

	"github.com/reprise-go/reprise/cmd/reprise/internal/connect"
	"github.com/reprise-go/reprise/cmd/reprise/internal/ui"
)

// showJSON is one record in the output for programs.
type showJSON struct {
	recordJSON
	Downstream map[string]string `json:"downstream,omitempty"`
	Answer     *answerJSON       `json:"answer,omitempty"`
	Next       string            `json:"client_gets_next"`
}

func (c *session) showCommand() *cobra.Command {
	var (
		reveal     bool
		downstream []string
	)
	cmd := &cobra.Command{
		Use:   "show ID",
		Short: "Show one record, and what its client gets next",
		Long: `show reads one record: its state, its last attempt, and its answer with status
and header. It prints the body, which may be confidential, only with --reveal.
ID is the ID in hexadecimal, or its first 8 digits or more, as logs show them.
With --downstream show prints the idempotency key that the handler passed to the
call with this name (AttemptView.Key), with which you can ask the called system.`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: c.completingIDs(),
		RunE: c.withStore(func(ctx context.Context, st *connect.Store, args []string) error {
			r, err := c.lookUp(ctx, st, args[0])
			if err != nil {
				return err
			}
			if r.State == store.StateUnreadable && len(downstream) > 0 {
				return findings("the record cannot be read, so the keys of its downstream calls are not known; leave out --downstream")
			}
			c.printRecord(&r, downstream, reveal)
			return nil
		}),
	}
	cmd.Flags().BoolVar(&reveal, "reveal", false, "also print the body of the answer")
	cmd.Flags().StringArrayVar(&downstream, "downstream", nil, "print the key of the downstream call with this `name`; may be repeated")
	return cmd
}

func newShowJSON(r *store.Record, downstream []string, reveal bool) showJSON {
	keys := make(map[string]string, len(downstream))
	for _, name := range downstream {
		keys[name] = r.Key(name)
	}
	return showJSON{newRecordJSON(r), keys, newAnswerJSON(answerOf(r), reveal), nextFor(r)}
}

// printRecord prints a record, and the keys of its downstream calls with these names.
func (c *session) printRecord(r *store.Record, downstream []string, reveal bool) {
	if c.json {
		c.printJSON(newShowJSON(r, downstream, reveal))
		return
	}
	c.printFacts(r)
	for _, name := range downstream {
		c.out.Line(ui.Paint(ui.Faint, "%-*s", factWidth, "key of call"), " ", r.Key(name), " ", name)
	}
	if a := answerOf(r); a != nil {
		c.out.Line()
		c.out.Line(ui.Piece{Style: ui.Strong, Text: "Answer"})
		c.printAnswer(a, reveal)
	}
	c.out.Line()
	c.out.Line(ui.Piece{Style: ui.Strong, Text: "The client gets next: "}, nextFor(r))
}

// printFacts prints everything about a record but its response.
func (c *session) printFacts(r *store.Record) {
	for _, f := range factsOf(r, time.Now()) {
		c.out.Line(ui.Paint(ui.Faint, "%-*s", factWidth, f.name), " ", f.value)
	}
}

// factWidth is how wide the names of facts are.
const factWidth = 11

// fact is a line about a record.
type fact struct {
	name  string
	value ui.Piece
}

// factsOf returns the known facts about a record.
func factsOf(r *store.Record, now time.Time) []fact {
	list := []fact{
		{"ID", ui.Piece{Style: ui.Strong, Text: r.ID.String()}},
		{"state", stateOf(r)},
	}
	if r.State == store.StateUnreadable {
		return append(list, fact{"fence", ui.Paint(ui.Plain, "%d", r.Fence)}, fact{"size", ui.Piece{Text: ui.Bytes(int64(r.Size))}}, fact{"kept for", validity(r)})
	}
	list = append(list,
		fact{"label", orNone(r.Label)},
		fact{"request", orNone(r.Description)},
		fact{"promise", promise(r)},
		fact{"attempt", ui.Paint(ui.Plain, "%d", r.Attempt)},
		fact{"fence", ui.Paint(ui.Plain, "%d", r.Fence)},
		fact{"claimed", ui.Piece{Text: when(r.ClaimedAt, now)}})
	switch r.State {
	case store.StateCompleted, store.StateExpired:
		list = append(list, fact{"completed", ui.Piece{Text: when(r.CompletedAt, now)}}, fact{"size", ui.Piece{Text: ui.Bytes(int64(r.Size))}})
	case store.StateUnknown:
		list = append(list, fact{"reason", ui.Piece{Text: r.Reason}})
	default:
		list = append(list, fact{"lease", lease(r)})
	}
	return append(list, fact{"kept for", validity(r)})
}
