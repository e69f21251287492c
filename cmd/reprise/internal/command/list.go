package command

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/reprise-go/reprise/core/store"

	"github.com/reprise-go/reprise/cmd/reprise/internal/connect"
	"github.com/reprise-go/reprise/cmd/reprise/internal/ui"
)

// selection are the flags that say which records a listing shows.
type selection struct {
	states []string
	label  string
	older  time.Duration
	after  string
	limit  int
	wide   bool
}

func (s *selection) register(cmd *cobra.Command, limit int) {
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&s.label, "label", "", "only records of the policy with this `name`")
	flags.DurationVar(&s.older, "older", 0, "only records claimed at least this long ago, such as 5m")
	flags.IntVar(&s.limit, "limit", limit, "stop after this many records; 0 shows all")
	flags.StringVar(&s.after, "after", "", "go on at this `cursor`, which an earlier listing printed")
	flags.BoolVar(&s.wide, "wide", false, "print IDs in full")
}

// query returns the query of the flags.
func (s *selection) query() (store.Query, error) {
	q := store.Query{Label: s.label, OlderThan: s.older, After: s.after, Limit: 1}
	if s.limit < 0 {
		return q, usage("--limit is %d, want 0 or more", s.limit)
	}
	for _, name := range s.states {
		state, ok := stateNamed(name)
		if !ok {
			return q, usage("--state is %q, want running, lapsed, unknown, completed, expired or unreadable", name)
		}
		q.States |= store.States(state)
	}
	if err := q.Validate(); err != nil {
		return q, usage("%w", err)
	}
	return q, nil
}

func stateNamed(name string) (store.RecordState, bool) {
	for s := store.StateRunning; s <= store.StateUnknown; s++ {
		if s.String() == strings.ToLower(name) {
			return s, true
		}
	}
	return 0, false
}

// list is the command "list".
func (c *session) list() *cobra.Command {
	var s selection
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List records",
		Long: `list shows the records of the store: first those that need a person, then those
that run, then the answers. It looks at the store in small steps and can be
interrupted; what was found so far is printed then. Exit code 1: there is none.`,
		Args: cobra.NoArgs,
		RunE: c.withStore(func(ctx context.Context, store *connect.Store, _ []string) error {
			q, err := s.query()
			if err != nil {
				return err
			}
			l := scan(ctx, store, q, s.limit, c.err.Progress())
			c.show(l, s.wide)
			if err := c.failed(ctx, l); err != nil {
				return err
			}
			c.goOn(l, "list")
			if len(l.records) == 0 {
				c.say("no such record in ", store.Name)
				return ended(ExitFindings)
			}
			return nil
		}),
	}
	s.register(cmd, 100)
	cmd.Flags().StringSliceVar(&s.states, "state", nil, "only records in these `states`: running, lapsed, unknown, completed, expired, unreadable")
	_ = cmd.RegisterFlagCompletionFunc("state", cobra.FixedCompletions([]string{"running", "lapsed", "unknown", "completed", "expired", "unreadable"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// stuck is the command "stuck".
func (c *session) stuck() *cobra.Command {
	s := selection{states: []string{"lapsed", "unknown", "unreadable"}}
	cmd := &cobra.Command{
		Use:   "stuck",
		Short: "Find the operations that need a person",
		Long: `stuck finds the lapsed records: their last attempt ended without an answer, so
it is unknown whether its effects happened. It finds those whose handler said so,
with its reason, or ran longer than MaxRun and may still run, and unreadable
records too. Find out what the attempt did, and tell the store with "reprise
resolve".

Exit code 0: nothing is stuck; 1: something is.`,
		Args: cobra.NoArgs,
		RunE: c.withStore(func(ctx context.Context, store *connect.Store, _ []string) error {
			q, err := s.query()
			if err != nil {
				return err
			}
			progress := c.err.Progress()
			l := scan(ctx, store, q, s.limit, progress)
			c.show(l, s.wide)
			if err := c.failed(ctx, l); err != nil {
				return err
			}
			c.goOn(l, "stuck")
			if len(l.records) == 0 {
				c.say("nothing is stuck: ", ui.Noun(l.scanned, "record", "records"), " looked at in ", ui.Duration(progress.Elapsed()))
				return nil
			}
			c.say("")
			c.say(ui.Noun(int64(len(l.records)), "record needs", "records need"), " a person: reprise show ID, then reprise resolve ID")
			return ended(ExitFindings)
		}),
	}
	s.register(cmd, 1000)
	return cmd
}

// goOn says how to see the rest of a listing that its limit ended.
func (c *session) goOn(l *listing, command string) {
	if l.next != "" && !c.json {
		c.err.Line(fmt.Sprintf("there may be more: reprise %s --after %s", command, l.next))
	}
}

// say prints a line for a person; it is silent for a program.
func (c *session) say(pieces ...any) {
	if !c.json {
		c.out.Line(pieces...)
	}
}
