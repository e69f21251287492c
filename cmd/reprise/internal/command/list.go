package command

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/reprise-go/reprise/core/operate"
	"github.com/reprise-go/reprise/core/store"

	"github.com/reprise-go/reprise/cmd/reprise/internal/connect"
	"github.com/reprise-go/reprise/cmd/reprise/internal/ui"
)

// choice has the flags that say which records a listing shows.
type choice struct {
	states []string
	label  string
	older  time.Duration
	limit  int
	wide   bool
}

func (s *choice) register(cmd *cobra.Command, limit int, labels cobra.CompletionFunc) {
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&s.label, "label", "", "only records of the policy with this `name`")
	flags.DurationVar(&s.older, "older", 0, "only records claimed at least this long ago, such as 5m")
	_ = cmd.RegisterFlagCompletionFunc("label", labels)
	flags.IntVar(&s.limit, "limit", limit, "show at most this many records; 0 shows all, and holds all in memory to sort them")
	flags.BoolVar(&s.wide, "wide", false, "print all columns, and IDs and texts in full, as in a pipe")
}

// selection returns the selection of the flags.
func (s *choice) selection() (*selection, error) {
	q := store.Query{Label: s.label, OlderThan: s.older, Limit: 1}
	if s.limit < 0 {
		return nil, usage("--limit is %d, want 0 or more", s.limit)
	}
	for _, name := range s.states {
		state, ok := operate.StateNamed(name)
		if !ok {
			return nil, usage("--state is %q, want running, lapsed, unknown, completed, expired or unreadable", name)
		}
		q.States |= store.States(state)
	}
	if err := q.Validate(); err != nil {
		return nil, usage("%w", err)
	}
	return &selection{query: q, limit: s.limit}, nil
}

// list is the command "list".
func (c *session) list() *cobra.Command {
	var choice choice
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List records",
		Long: `list looks at all records of the store, in small steps, and shows 100 of them:
first those that need a person, then those that a retry takes over, then those
that run, each the oldest first, and then the latest answers. When it is
interrupted, it prints what it has found so far. Exit code 1: nothing was found.

--state unreadable also reads the answer of every completed record, and shows
those whose retries get 500 record-corrupt. It can check the form of a sealed
answer, but not whether the key of its client opens it.`,
		Args: cobra.NoArgs,
		RunE: c.withStore(func(ctx context.Context, st *connect.Store, _ []string) error {
			s, err := choice.selection()
			if err != nil {
				return err
			}
			s.answers = s.query.States != 0 && s.query.States.Has(store.StateUnreadable)
			l := scan(ctx, st, s, c.err.Progress())
			c.show(l, choice.wide)
			if err := c.failed(ctx, l); err != nil {
				return err
			}
			if len(l.records) == 0 {
				c.say("no such record in ", st.Name)
				return ended(ExitFindings)
			}
			return nil
		}),
	}
	choice.register(cmd, 100, c.completingLabels())
	cmd.Flags().StringSliceVar(&choice.states, "state", nil, "only records in these `states`: running, lapsed, unknown, completed, expired, unreadable")
	_ = cmd.RegisterFlagCompletionFunc("state", cobra.FixedCompletions([]string{"running", "lapsed", "unknown", "completed", "expired", "unreadable"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// stuck is the command "stuck".
func (c *session) stuck() *cobra.Command {
	var choice choice
	all, answers := false, false
	cmd := &cobra.Command{
		Use:   "stuck",
		Short: "Find the operations that need a person",
		Long: `stuck finds the operations whose outcome is unknown, and which no retry runs again
until a person resolves them: those of AtMostOnce policies whose last attempt
ended without an answer, those whose handler reported an unknown outcome, with its
reason, and those whose handler ran longer than MaxRun and may still run. It also
finds unreadable records, and with --answers, which reads them all, the completed
ones whose answer cannot be read. Find out what the attempt did, and record that with
"reprise resolve".

A lapsed record of a Recoverable policy waits for a retry, which takes it over,
unless its policy allows no more attempts (MaxAttempts). stuck counts those that
wait, and --all shows them.

Exit code 0: nothing is stuck; 1: something is. Run it every few minutes as a job.`,
		Args: cobra.NoArgs,
		RunE: c.withStore(func(ctx context.Context, st *connect.Store, _ []string) error {
			s, err := choice.selection()
			if err != nil {
				return err
			}
			s.query.States, s.persons, s.answers = operate.MayNeedPerson, !all, answers
			progress := c.err.Progress()
			l := scan(ctx, st, s, progress)
			c.show(l, choice.wide)
			if err := c.failed(ctx, l); err != nil {
				return err
			}
			found := int64(len(l.records) + l.left)
			switch {
			case found == 0:
				c.say("nothing is stuck: ", ui.Noun(l.scanned, "record", "records"), " looked at in ", ui.Duration(progress.Elapsed()))
				if !answers {
					c.say("answers were not read: reprise stuck --answers finds those that cannot be")
				}
			case all:
				c.say(ui.Noun(found, "record needs a person or a retry", "records need a person or a retry"))
			default:
				c.say(ui.Noun(found, "record needs", "records need"), " a person: reprise show ID, then reprise resolve ID")
			}
			if l.waiting > 0 {
				c.say(ui.Noun(int64(l.waiting), "lapsed record waits", "lapsed records wait"), " for a retry, which takes over: reprise stuck --all")
			}
			if found > 0 {
				return ended(ExitFindings)
			}
			return nil
		}),
	}
	choice.register(cmd, 1000, c.completingLabels())
	cmd.Flags().BoolVar(&answers, "answers", false, "also read the answers of completed records, and show those that cannot be read")
	cmd.Flags().BoolVar(&all, "all", false, "also show those that a retry takes over, and exit with 1 for them")
	return cmd
}

// say prints a line for a person; it is silent for a program.
func (c *session) say(pieces ...any) {
	if !c.json {
		c.out.Line(pieces...)
	}
}
