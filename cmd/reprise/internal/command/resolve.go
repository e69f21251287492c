package command

import (
	"context"
	"errors"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/reprise-go/reprise/core/operate"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/store"

	"github.com/reprise-go/reprise/cmd/reprise/internal/connect"
	"github.com/reprise-go/reprise/cmd/reprise/internal/ui"
)

// decision is the operator's decision about a record.
type decision struct {
	operate.Resolution
	status   int
	headers  []string
	body     string
	yes      bool
	auditLog string
	fenced   bool // --fence was passed
}

// resolve is the command "resolve".
func (c *session) resolve() *cobra.Command {
	var d decision
	cmd := &cobra.Command{
		Use:   "resolve ID (--forget | --answer STATUS)",
		Short: "Decide about a record whose outcome is unknown",
		Long: `resolve ends a lapsed or unknown record, once you know what its last attempt did.

  --forget   it did nothing: the next request with the key runs the operation
  --answer   it did its work: keep this response, which every retry gets

It shows the record before and after, and asks you to type the first digits of its
ID, 8 or more. A script passes --yes and the --fence that it saw instead. A record
that has changed since it was shown is left as it is.

A record that is completed, expired or unreadable can be forgotten, too, such as
a failure that was kept although nothing was sent. The operation may then run a
second time, for a client that has its answer already. That is why --forget needs
--run-again for such a record, and only for such a record.

  reprise resolve 3f2a9c41e07b --answer 201 --header 'Content-Type: application/json' \
    --body @receipt.json --reason 'bank confirms payment 8812, INC-204'

Say why with --reason: what was decided, by whom and why goes to an audit log, as
JSON to standard error or to a file, before the record is changed and after it.
Exit code 1: the record cannot be resolved in this way, or has changed; nothing was
written.`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: c.completingIDs(),
		PreRunE: func(cmd *cobra.Command, _ []string) error {
			d.fenced = cmd.Flags().Changed("fence")
			return d.check(c, cmd.Flags().Changed("answer"))
		},
		RunE: c.withStore(func(ctx context.Context, store *connect.Store, args []string) error {
			return c.decide(ctx, store, args[0], &d)
		}),
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.BoolVar(&d.Forget, "forget", false, "forget the record: the next request with the key runs the operation")
	flags.BoolVar(&d.RunAgain, "run-again", false, "with --forget: agree that the operation of a completed, expired or unreadable record may run again")
	flags.IntVar(&d.status, "answer", 0, "keep an answer with this `status`")
	flags.StringArrayVar(&d.headers, "header", nil, "a field of the answer, `'Name: value'`; may be repeated")
	flags.StringVar(&d.body, "body", "", "the body of the answer: `text`, @file, or @- for standard input")
	flags.DurationVar(&d.Retention, "retention", 0, "how long the answer is replayed (default: the retention of the record's policy)")
	flags.StringVar(&d.Reason, "reason", "", "why, for the audit log; required")
	flags.StringVar(&d.auditLog, "audit-log", "", "append the audit log to this `file`")
	flags.BoolVar(&d.yes, "yes", false, "do not ask; needs --fence")
	flags.Uint64Var(&d.Fence, "fence", 0, "refuse a record that has another fence")
	return cmd
}

// check refuses a decision that cannot be carried out, before a server is contacted.
func (d *decision) check(c *session, answered bool) error {
	switch {
	case d.Forget == answered:
		return usage("pass either --forget or --answer STATUS")
	case d.RunAgain && !d.Forget:
		return usage("--run-again belongs to --forget")
	case d.Forget && (d.body != "" || len(d.headers) > 0):
		return usage("--header and --body belong to --answer")
	case d.Reason == "":
		return usage("pass --reason: the audit log says why")
	case d.yes && !d.fenced:
		return usage("--yes needs --fence N, the fence of the record that you decided about (reprise show ID --json)")
	case !d.yes && c.json:
		return usage("--json asks no questions: pass --yes and --fence N")
	case !d.yes && c.prompt.Terminal() == nil:
		return usage("standard input is not a terminal, so you cannot confirm: pass --yes and --fence N")
	case !d.yes && d.body == "@-":
		return usage("--body @- takes standard input, which the confirmation needs: pass a file, or --yes and --fence N")
	case d.Forget:
		return nil
	case d.Retention == 0:
	case d.Retention < store.MinDuration || d.Retention > store.MaxDuration:
		return usage("--retention is %v, want %v to %v", d.Retention, store.MinDuration, store.MaxDuration)
	}
	var err error
	if d.Answer, err = d.response(c.streams.In); err != nil {
		return err
	}
	if _, err := operate.Encode(d.Answer); err != nil {
		return usage("a replay could not serve this answer: %w", err)
	}
	return nil
}

// response returns the response that the flags describe.
func (d *decision) response(in io.Reader) (protocol.Response, error) {
	r := protocol.Response{Status: d.status}
	var fields []protocol.Field
	for _, h := range d.headers {
		name, value, ok := strings.Cut(h, ":")
		if !ok {
			return r, usage("--header %q has no colon: want 'Name: value'", h)
		}
		f := protocol.Field{Name: strings.TrimSpace(name), Value: strings.TrimSpace(value)}
		for _, before := range fields {
			f.Add = f.Add || strings.EqualFold(before.Name, f.Name)
		}
		fields = append(fields, f)
	}
	r.Header = protocol.NewHeader(fields...)
	var err error
	if r.Body, err = readBody(d.body, in); err != nil {
		return r, usage("--body: %w", err)
	}
	return r, nil
}

// decide carries out a decision.
func (c *session) decide(ctx context.Context, st *connect.Store, text string, d *decision) error {
	before, err := c.lookUp(ctx, st, text)
	if err != nil {
		return err
	}
	d.ID, d.State, d.Operator = before.ID, before.State, operator()
	if !d.fenced {
		d.Fence = before.Fence
	}
	next, err := d.Check(&before)
	if err != nil {
		return refused(&before, err)
	}
	if d.Retention == 0 && !d.Forget {
		d.Retention = before.Retention
	}
	if !c.json {
		c.preview(&before, d, &next)
	}
	if !d.yes {
		if err := c.confirm(ctx, &before, d); err != nil {
			return err
		}
	}
	log, file, err := c.openAudit(d.auditLog)
	if err != nil {
		return err
	}
	defer file.Close()
	// From here on ignore signals: a write must not stop midway.
	ctx = context.WithoutCancel(ctx)
	err = operate.Resolve(ctx, st.Look, d.Resolution, log)
	switch {
	case errors.Is(err, operate.ErrNotAudited):
		return usage("%w", err)
	case errors.Is(err, store.ErrRecordChanged):
		return c.changed(ctx, st, &before)
	case err != nil:
		return storeFailed(ctx, "resolving the record "+before.ID.Short()+" ("+leftBehind(&before, err)+")", err)
	}
	return c.readBack(ctx, st, &before, d)
}

// refused reports that a record cannot be resolved in this way.
func refused(r *store.Record, err error) error {
	if errors.Is(err, store.ErrRecordChanged) {
		now := strings.TrimPrefix(err.Error(), store.ErrRecordChanged.Error()+": ")
		return findings("the record %s changed since it was shown: %s; nothing was changed", r.ID.Short(), now)
	}
	advice := ""
	if operate.ChoicesOf(r.State).RunAgain {
		advice = "; --forget --run-again forgets it"
	}
	return findings("%w%s; nothing was changed: its client gets %s", err, advice, nextFor(r))
}

// leftBehind describes the state that a failed write may have left in the store.
func leftBehind(r *store.Record, err error) string {
	switch {
	case errors.Is(err, store.ErrNotReplicated):
		return "the change was written, but too few replicas confirmed it: a failover may undo it"
	case errors.Is(err, store.ErrUnknown):
		return "the change may or may not have been written; look: reprise show " + r.ID.String()
	}
	return "nothing was changed"
}

// preview shows the record, and the effect of the decision.
func (c *session) preview(r *store.Record, d *decision, next *operate.Next) {
	c.out.Line(ui.Piece{Style: ui.Strong, Text: "Before"})
	c.printFacts(r)
	c.out.Line(ui.Paint(ui.Faint, "%-*s", factWidth, "client gets"), " ", nextFor(r))
	c.out.Line()
	c.out.Line(ui.Piece{Style: ui.Strong, Text: "After"})
	if d.Forget {
		c.out.Line("  no record: the next request with the key runs the operation")
		switch {
		case r.State == store.StateUnreadable:
			c.out.Line(ui.Piece{Style: ui.Warn, Text: "  a newer release may have run the operation, or be running it: see whether one is in use"})
		case r.State == store.StateUnknown:
			c.out.Line(ui.Piece{Style: ui.Warn, Text: "  if it ran longer than MaxRun, it may still run: make sure that it has ended"})
		case r.State.WasCompleted():
			c.out.Line(ui.Paint(ui.Warn, "  the operation was completed, and the key would be remembered for %s more", ui.Duration(r.Validity)))
		default:
			c.out.Line(ui.Piece{Style: ui.Warn, Text: "  its handler may still run, if it ran longer than MaxRun or its process was paused: make sure that it has ended"})
		}
		c.out.Line()
		return
	}
	c.printAnswer(&operate.Answer{Response: d.Answer}, true)
	if _, typed := d.Answer.Header.Get("Content-Type"); !typed && len(d.Answer.Body) > 0 {
		c.out.Line(ui.Piece{Style: ui.Warn, Text: "  the answer has a body and no Content-Type"})
	}
	c.out.Line(ui.Paint(ui.Faint, "  client gets %s", next.Text))
	c.out.Line(ui.Paint(ui.Faint, "  replayed for %s", ui.Duration(d.Retention)))
	if d.Retention < r.Retention {
		c.out.Line(ui.Paint(ui.Warn, "  the policy promises %s: until then a retry gets 409 result-expired instead", ui.Duration(r.Retention)))
	}
	if r.Horizon > 0 {
		c.out.Line(ui.Paint(ui.Faint, "  then remembered for %s without the answer: a retry gets 409 result-expired", ui.Duration(r.Horizon)))
	}
	c.out.Line()
}

// confirm asks for the beginning of the ID, which an operator does not type by accident.
func (c *session) confirm(ctx context.Context, r *store.Record, d *decision) error {
	want := r.ID.String()[:operate.MinDigits]
	verb := "keep this answer"
	switch {
	case d.RunAgain:
		verb = "forget the record, and let the operation run again"
	case d.Forget:
		verb = "forget the record"
	}
	typed, err := c.prompt.Line(ctx, "Type "+want+" to "+verb+": ")
	switch {
	case ctx.Err() != nil:
		c.err.Line()
		return &failure{code: ExitInterrupted, err: errors.New("interrupted; nothing was changed")}
	case err != nil && !errors.Is(err, io.EOF):
		return findings("reading the confirmation: %w; nothing was changed", err)
	case len(strings.TrimSpace(typed)) < len(want) || !strings.HasPrefix(r.ID.String(), strings.ToLower(strings.TrimSpace(typed))):
		return findings("not confirmed; nothing was changed")
	}
	return nil
}

// changed reports that a record is not the one that was shown.
func (c *session) changed(ctx context.Context, store *connect.Store, before *store.Record) error {
	now, err := store.Look.Inspect(ctx, before.ID)
	if err != nil {
		return findings("the record %s changed since it was shown, so nothing was written; reading it again: %w", before.ID.Short(), err)
	}
	return findings("the record %s changed since it was shown, so nothing was written: it is %v now, attempt %d, fence %d",
		before.ID.Short(), now.State, now.Attempt, now.Fence)
}

// resolvedJSON is a resolution in the output for programs.
type resolvedJSON struct {
	Before recordJSON  `json:"before"`
	After  *recordJSON `json:"after"`
	Next   string      `json:"client_gets_next"`
}

// readBack shows the record as the store has it now.
func (c *session) readBack(ctx context.Context, st *connect.Store, before *store.Record, d *decision) error {
	after, err := st.Look.Inspect(ctx, before.ID)
	gone := errors.Is(err, store.ErrNotFound)
	if err != nil && !gone {
		return storeFailed(ctx, "the record is resolved; reading it back", err)
	}
	out := resolvedJSON{Before: newRecordJSON(before), Next: nextFor(nil)}
	if !gone {
		view := newRecordJSON(&after)
		out.After, out.Next = &view, nextFor(&after)
	}
	if c.json {
		c.printJSON(out)
		return nil
	}
	done := "The answer is kept."
	switch {
	case d.Forget && gone:
		done = "The record is forgotten."
	case d.Forget:
		done = "The record is forgotten, and a client has already claimed the key again."
	}
	c.out.Line(ui.Paint(ui.Good, "✓ "), done)
	c.out.Line(ui.Piece{Style: ui.Strong, Text: "The client gets next: "}, out.Next)
	return nil
}
