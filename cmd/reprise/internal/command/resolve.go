package command

import (
	"context"
	"errors"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/protocol/stored"
	"github.com/reprise-go/reprise/core/store"

	"github.com/reprise-go/reprise/cmd/reprise/internal/connect"
	"github.com/reprise-go/reprise/cmd/reprise/internal/ui"
)

// decision is the operator's decision about a record.
type decision struct {
	forget    bool
	again     bool
	status    int
	headers   []string
	body      string
	retention time.Duration
	reason    string
	yes       bool
	fence     uint64
	auditLog  string

	fenced  bool // --fence was passed
	answer  *answer
	payload []byte
}

// resolve is the command "resolve".
func (c *session) resolve() *cobra.Command {
	var d decision
	cmd := &cobra.Command{
		Use:   "resolve ID (--forget | --answer STATUS)",
		Short: "Decide about a record whose outcome is unknown",
		Long: `resolve ends a lapsed or unknown record, once you found out what its last attempt did.

  --forget   it did nothing: the next request with the key runs the operation
  --answer   it did its work: keep this response, which every retry gets

It shows the record before and after, and asks you to type a part of its ID. A
script passes --yes with the --fence that it saw instead. A record that changed
since it was shown is left as it is.

A record that is completed, expired or unreadable can be forgotten, too, such as
a failure that was kept although nothing was sent. Whoever has its answer may
then run the operation a second time: so --forget needs --run-again for it, and
for nothing else.

  reprise resolve 3f2a9c41e07b --answer 201 --header 'Content-Type: application/json' \
    --body @receipt.json --reason 'bank confirms payment 8812, INC-204'

What was decided goes to an audit log, as JSON to standard error or to a file.
Exit code 1: the record is not one to resolve, or changed; nothing was written.`,
		Args: cobra.ExactArgs(1),
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
	flags.BoolVar(&d.forget, "forget", false, "forget the record: the next request with the key runs")
	flags.BoolVar(&d.again, "run-again", false, "with --forget: the operation may run again, though the record is completed or unreadable")
	flags.IntVar(&d.status, "answer", 0, "keep an answer with this `status`")
	flags.StringArrayVar(&d.headers, "header", nil, "a field of the answer, `'Name: value'`; may be repeated")
	flags.StringVar(&d.body, "body", "", "the body of the answer: `text`, @file, or @- for standard input")
	flags.DurationVar(&d.retention, "retention", 0, "how long the answer is replayed; by default as long as the policy of the record says")
	flags.StringVar(&d.reason, "reason", "", "why, for the audit log")
	flags.StringVar(&d.auditLog, "audit-log", "", "append the audit log to this `file`")
	flags.BoolVar(&d.yes, "yes", false, "do not ask; needs --fence")
	flags.Uint64Var(&d.fence, "fence", 0, "refuse a record that has another fence")
	return cmd
}

// check refuses a decision that could not be carried out, before any server is contacted.
func (d *decision) check(c *session, answered bool) error {
	switch {
	case d.forget == answered:
		return usage("pass either --forget or --answer STATUS")
	case d.again && !d.forget:
		return usage("--run-again belongs to --forget")
	case d.forget && (d.body != "" || len(d.headers) > 0):
		return usage("--header and --body belong to --answer")
	case d.yes && !d.fenced:
		return usage("--yes needs --fence N, the fence of the record that you decided about (reprise show ID --json)")
	case !d.yes && c.json:
		return usage("--json asks no questions: pass --yes and --fence N")
	case !d.yes && c.prompt.Terminal() == nil:
		return usage("standard input is not a terminal, so nobody can confirm: pass --yes and --fence N")
	case !d.yes && d.body == "@-":
		return usage("--body @- takes standard input, which the confirmation needs: pass a file, or --yes and --fence N")
	case d.forget:
		return nil
	case d.retention == 0:
	case d.retention < store.MinDuration || d.retention > store.MaxDuration:
		return usage("--retention is %v, want %v to %v", d.retention, store.MinDuration, store.MaxDuration)
	}
	response, err := d.response(c.streams.In)
	if err != nil {
		return err
	}
	return d.encode(response)
}

// encode encodes a response, unless a replay could not serve it.
func (d *decision) encode(response protocol.Response) (err error) {
	if d.payload, err = stored.Encode(response); err != nil {
		return usage("a replay could not serve this answer: %w", err)
	}
	d.answer = &answer{response: response}
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
	if err := refusal(&before, d); err != nil {
		return err
	}
	if d.retention == 0 && !d.forget {
		d.retention = before.Retention
	}
	if !c.json {
		c.preview(&before, d)
	}
	if !d.yes {
		if err := c.confirm(ctx, &before, d); err != nil {
			return err
		}
	}
	log, err := c.openAudit(d.auditLog)
	if err != nil {
		return err
	}
	defer log.close()
	if err := log.line(ctx, "resolving", st, &before, d, nil); err != nil {
		return usage("the audit log cannot be written, so nothing was changed: %w", err)
	}
	// From here on a signal waits: a write must not stop midway.
	ctx = context.WithoutCancel(ctx)
	err = carryOut(ctx, st, &before, d, log)
	switch {
	case errors.Is(err, store.ErrRecordChanged):
		return c.changed(ctx, st, &before)
	case err != nil:
		c.err.Line(ui.Piece{Style: ui.Warn, Text: leftBehind(&before, err)})
		return storeFailed(ctx, "resolving the record "+before.ID.Short(), err)
	}
	return c.readBack(ctx, st, &before, d)
}

// leftBehind describes the state that a failed write may have left in the store.
func leftBehind(r *store.Record, err error) string {
	switch {
	case errors.Is(err, store.ErrNotReplicated):
		return "it was written, and too few replicas confirmed it: a failover may undo it"
	case errors.Is(err, store.ErrUnknown):
		return "whether it was written is not certain; run: reprise show " + r.ID.String()
	}
	return "nothing was changed"
}

// carryOut writes a decision, and its result to the audit log.
func carryOut(ctx context.Context, st *connect.Store, r *store.Record, d *decision, log *audit) error {
	ctx, cancel := st.Bounded(ctx)
	defer cancel()
	err := st.Look.Resolve(ctx, r.ID, store.Resolution{State: r.State, Fence: r.Fence, Forget: d.forget, Payload: d.payload, Retention: d.retention})
	_ = log.line(ctx, "resolved", st, r, d, err) // the one before it is written
	return err
}

// refusal says why a record is not one to resolve; nil means that it is.
func refusal(r *store.Record, d *decision) error {
	attempt := r.State == store.StateLapsed || r.State == store.StateUnknown
	switch {
	case r.State == store.StateRunning:
		return findings("the record %s is running: its lease has %s left; nothing was changed", r.ID.Short(), ui.Duration(r.Lease))
	case !attempt && !d.forget:
		return findings("the record %s is %v: its client gets %s; it can only be forgotten; nothing was changed", r.ID.Short(), r.State, nextFor(r))
	case d.fenced && d.fence != r.Fence:
		return findings("the record %s changed: its fence is %d, not %d; nothing was changed", r.ID.Short(), r.Fence, d.fence)
	case attempt && d.again: // who saw an attempt has not agreed to forget the result that it may get late, with the same fence
		return findings("the record %s is %v: forget it without --run-again, which is for what is completed, expired or unreadable; nothing was changed", r.ID.Short(), r.State)
	case !attempt && !d.again:
		return findings("the record %s is %v: its client gets %s; once it is forgotten, the next request runs the operation, maybe for the second time; "+
			"pass --run-again if it should; nothing was changed", r.ID.Short(), r.State, nextFor(r))
	}
	return nil
}

// preview shows the record, and the effect of the decision.
func (c *session) preview(r *store.Record, d *decision) {
	c.out.Line(ui.Piece{Style: ui.Strong, Text: "Before"})
	c.printFacts(r)
	c.out.Line(ui.Paint(ui.Faint, "%-*s", factWidth, "client gets"), " ", nextFor(r))
	c.out.Line()
	c.out.Line(ui.Piece{Style: ui.Strong, Text: "After"})
	if d.forget {
		c.out.Line("  no record: the next request with the key runs the operation")
		switch {
		case r.State == store.StateUnreadable:
			c.out.Line(ui.Piece{Style: ui.Warn, Text: "  the operation may have been done, or run now, in a newer release: see whether one is in use"})
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
	c.printAnswer(d.answer, true)
	if _, typed := d.answer.response.Header.Get("Content-Type"); !typed && len(d.answer.response.Body) > 0 {
		c.out.Line(ui.Piece{Style: ui.Warn, Text: "  the answer has a body and no Content-Type"})
	}
	c.out.Line(ui.Paint(ui.Faint, "  replayed for %s", ui.Duration(d.retention)))
	if d.retention < r.Retention {
		c.out.Line(ui.Paint(ui.Warn, "  the policy promises %s: until then a retry gets 409 result-expired instead", ui.Duration(r.Retention)))
	}
	if r.Horizon > 0 {
		c.out.Line(ui.Paint(ui.Faint, "  then remembered for %s without the answer: a retry gets 409 result-expired", ui.Duration(r.Horizon)))
	}
	c.out.Line()
}

// confirm asks for a part of the ID, which is not typed by accident.
func (c *session) confirm(ctx context.Context, r *store.Record, d *decision) error {
	want := r.ID.String()[:minDigits]
	verb := "keep this answer"
	switch {
	case d.again:
		verb = "forget the record, and let the operation run again"
	case d.forget:
		verb = "forget the record"
	}
	typed, err := c.prompt.Line(ctx, "Type "+want+" to "+verb+": ")
	switch {
	case ctx.Err() != nil:
		c.err.Line()
		return &failure{code: ExitInterrupted, err: errors.New("interrupted; nothing was changed")}
	case err != nil && !errors.Is(err, io.EOF):
		return findings("reading the confirmation: %w; nothing was changed", err)
	case strings.TrimSpace(typed) != want:
		return findings("not confirmed; nothing was changed")
	}
	return nil
}

// changed reports that a record is not the one that was shown.
func (c *session) changed(ctx context.Context, store *connect.Store, before *store.Record) error {
	now, err := c.inspect(ctx, store, before.ID)
	if err != nil {
		return findings("the record %s changed since it was shown, so nothing was written: %w", before.ID.Short(), err)
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
	bounded, cancel := st.Bounded(ctx)
	defer cancel()
	after, err := st.Look.Inspect(bounded, before.ID)
	gone := errors.Is(err, store.ErrNotFound)
	if err != nil && !gone {
		return storeFailed(ctx, "the record is resolved, and reading it back", err)
	}
	out := resolvedJSON{Before: newRecordJSON(before), Next: "a new run: there is no record"}
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
	case d.forget && gone:
		done = "The record is forgotten."
	case d.forget:
		done = "The record is forgotten, and a client claimed it again already."
	}
	c.out.Line(ui.Paint(ui.Good, "✓ "), done)
	c.out.Line(ui.Piece{Style: ui.Strong, Text: "The client gets next: "}, out.Next)
	return nil
}
