// Package command has the commands of the program, one per file.
package command

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/reprise-go/reprise/core/store"

	"github.com/reprise-go/reprise/cmd/reprise/internal/connect"
	"github.com/reprise-go/reprise/cmd/reprise/internal/safe"
	"github.com/reprise-go/reprise/cmd/reprise/internal/ui"
)

// Streams are the standard input, output and error of a process, and its environment.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
	Getenv   func(string) string
}

// session is one run of the program.
type session struct {
	streams  Streams
	settings connect.Settings
	json     bool
	noColour bool

	out, err *ui.Stream
	prompt   *ui.Prompt
	store    *connect.Store // of the command that runs; nil if it needs none
}

// Run runs a command line and returns the exit code.
func Run(ctx context.Context, args []string, streams Streams) int {
	c := &session{streams: streams, out: ui.NewStream(streams.Out, streams.Getenv), err: ui.NewStream(streams.Err, streams.Getenv)}
	c.prompt = &ui.Prompt{In: streams.In, Out: c.err}
	root := c.root() //nolint:contextcheck // the commands get ctx from ExecuteContext
	root.SetArgs(args)
	root.SetOut(c.out)
	root.SetErr(c.err)
	err := root.ExecuteContext(ctx)
	if c.store != nil {
		c.store.Close()
	}
	if failed := c.out.Err(); failed != nil && codeOf(err) < ExitUnsafe {
		err = unsafe("writing the output: %w", failed)
	}
	if err != nil {
		c.json = c.json || slices.Contains(args, "--json") // an unknown command or flag ends the parsing before the others
		if slices.Contains(args, "--no-color") {
			c.err.Plain()
		}
		c.explain(err)
	}
	return codeOf(err)
}

// errorJSON is an error in the output for programs, on standard error.
type errorJSON struct {
	Error string `json:"error"`
	Exit  int    `json:"exit_code"`
}

// explain prints why a command ended, unless the command has printed it.
func (c *session) explain(err error) {
	text := strings.TrimPrefix(err.Error(), "reprise: ")
	if c.store != nil {
		text = c.store.Redact(text)
	}
	switch text = safe.Fold(text); {
	case c.json && text != "":
		writeJSON(c.err, errorJSON{text, codeOf(err)})
		return
	case text != "":
		c.err.Line(ui.Paint(ui.Bad, "reprise:"), " ", text)
	}
	if f := new(failure); !errors.As(err, &f) {
		c.err.Line("reprise --help shows the commands and flags")
	}
}

// root returns the program's command with all others below it.
func (c *session) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "reprise",
		Short: "See and repair the idempotency records of a service",
		Long: `reprise shows an operator the idempotency records of a store, the operations that
need a person, and the effect of a decision about one of them.

Exit codes: 0 fine; 1 something needs a look, nothing was found, or a change was
refused; 2 the command line is wrong; 3 a guarantee does not hold, the store could
not answer or has no record at all, or the output could not be written; 130
interrupted.

The URL of the store comes from --store or from REPRISE_STORE, and the prefix of a
service's records in Redis or etcd from --prefix or REPRISE_PREFIX. Use the variable for a
URL with a password: other users can see a command line.`,
		Version:       built().String(),
		SilenceErrors: true,
		SilenceUsage:  true,
		PersistentPreRun: func(*cobra.Command, []string) {
			if c.noColour {
				c.out.Plain()
				c.err.Plain()
			}
		},
	}
	root.SetVersionTemplate("reprise {{.Version}}\n")
	root.SetHelpCommand(help(root))
	flags := root.PersistentFlags()
	flags.SortFlags = false
	flags.BoolVar(&c.json, "json", false, "print the result as JSON")
	flags.BoolVar(&c.noColour, "no-color", false, "print without colour, as with the environment variable NO_COLOR")
	looking := []*cobra.Command{c.doctor(), c.stuck(), c.list(), c.showCommand(), c.find(), c.resolve(), c.purge(), c.console(), c.proxy()}
	migrate := c.migrate()
	for _, cmd := range append(migrate.Commands(), looking...) {
		c.settings.Register(cmd.Flags())
	}
	root.AddCommand(looking...)
	root.AddCommand(migrate, c.judge(), c.version())
	return root
}

// help is the command "help", which fails where there is no such command.
func help(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Help about any command",
		RunE: func(_ *cobra.Command, args []string) error {
			cmd, rest, err := root.Find(args)
			if err != nil || len(rest) > 0 {
				return usage("there is no command %q; reprise --help shows them", strings.Join(args, " "))
			}
			return cmd.Help()
		},
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) (names []string, _ cobra.ShellCompDirective) {
			if cmd, rest, err := root.Find(args); err == nil && len(rest) == 0 {
				for _, below := range cmd.Commands() {
					names = append(names, below.Name()+"\t"+below.Short)
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
	}
}

// withStore returns the body of a command that needs a store.
func (c *session) withStore(run func(ctx context.Context, store *connect.Store, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		if err := c.settings.Complete(cmd.Flags(), c.streams.Getenv); err != nil {
			return usage("%w", err)
		}
		st, err := connect.Open(cmd.Context(), &c.settings)
		switch {
		case c.settings.ServicePool && errors.Is(err, store.ErrInvalid): // the service could not start with it either
			return unsafe("%w", err)
		case errors.Is(err, store.ErrUnavailable):
			return storeFailed(cmd.Context(), "opening the store", err)
		case err != nil:
			return usage("%w", err)
		}
		c.store = st
		return run(cmd.Context(), st, args)
	}
}

// printJSON prints the result of a command.
func (c *session) printJSON(value any) { writeJSON(c.out, value) }

// writeJSON writes a value as JSON that a terminal can show.
func writeJSON(to *ui.Stream, value any) { _, _ = to.Raw().Write(append(encode(value, ""), '\n')) }

// encode returns a value as JSON that a terminal can show, on lines of which all but the
// first begin with prefix.
func encode(value any, prefix string) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent(prefix, "  ")
	_ = e.Encode(value) // cannot fail: the values are strings, numbers and lists
	return safe.JSON(bytes.TrimRight(b.Bytes(), "\n"))
}
