package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/reprise-go/reprise/cmd/reprise/internal/connect"
	"github.com/reprise-go/reprise/cmd/reprise/internal/ui"
)

// migrate is the command "migrate" with those below it.
func (c *session) migrate() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "migrate",
		Short: "Print, apply or compare the schema of a store in a database",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return usage("say what to do: reprise migrate print, apply or status")
		},
	}
	cmd.AddCommand(c.migratePrint(), c.migrateApply(), c.migrateStatus())
	return cmd
}

// errNoSchema refuses stores that have no schema.
var errNoSchema = usage("migrate is for a database; a store of another kind needs no schema")

func (c *session) migratePrint() *cobra.Command {
	var (
		format, dir string
		from        int
		down        bool
	)
	cmd := &cobra.Command{
		Use:   "print",
		Short: "Print the migrations, or write them as files for another tool",
		Long: `print writes the migrations of this release, for PostgreSQL unless --store is of
another database. It contacts no server.

  --format sql             the statements; with --down, those that undo them
  --format goose           files for goose, each with both directions
  --format atlas           files for Atlas, with their atlas.sum; the statements
                           that undo them are below down/
  --format golang-migrate  pairs NNNN_name.up.sql and NNNN_name.down.sql, which
                           Atlas reads too

Each migration records that it was applied, so "reprise migrate status" and
"reprise doctor" see it, whichever tool ran it.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := c.settings.Complete(cmd.Flags(), c.streams.Getenv); err != nil {
				return usage("%w", err)
			}
			list, err := connect.Migrations(&c.settings)
			switch {
			case err != nil:
				return usage("%w", err)
			case list == nil:
				return errNoSchema
			}
			if from < 1 || from > len(list) {
				return usage("--from is %d, want 1 to %d", from, len(list))
			}
			files, err := migrationFiles(list[from-1:], format, down)
			if err != nil {
				return err
			}
			return c.writeMigrations(files, dir)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&format, "format", "sql", "sql, goose, atlas or golang-migrate")
	flags.StringVar(&dir, "dir", "", "write files into this `folder` instead of printing them")
	flags.IntVar(&from, "from", 1, "start at this version")
	flags.BoolVar(&down, "down", false, "with --format sql: print the statements that undo each, the last one first")
	_ = cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions([]string{"sql", "goose", "atlas", "golang-migrate"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// writeMigrations writes files into a folder, or prints them. It overwrites no file that
// differs, because a migration that was applied must not change.
func (c *session) writeMigrations(files []file, dir string) error {
	if dir == "" {
		for i, f := range files {
			if len(files) > 1 {
				if i > 0 {
					fmt.Fprintln(c.out)
				}
				fmt.Fprintf(c.out, "-- %s\n", f.name)
			}
			_, _ = c.out.Write(f.content)
		}
		return nil
	}
	for _, f := range files {
		name := filepath.Join(dir, filepath.FromSlash(f.name))
		if before, err := os.ReadFile(name); err == nil && !bytes.Equal(before, f.content) && !f.replace { //nolint:gosec // the operator's own folder
			return findings("%s exists and differs from the migration; no file was written: choose another --dir, or remove the file if it was never applied", name)
		}
	}
	for _, f := range files {
		name := filepath.Join(dir, filepath.FromSlash(f.name))
		if err := os.MkdirAll(filepath.Dir(name), 0o750); err != nil {
			return usage("%w", err)
		}
		if err := os.WriteFile(name, f.content, 0o600); err != nil {
			return usage("%w", err)
		}
		c.say(name)
	}
	return nil
}

// statusJSON is the state of a schema in the output for programs.
type statusJSON struct {
	Store   string `json:"store"`
	Applied int    `json:"applied"`
	Known   int    `json:"known"`
	Current bool   `json:"current"`
}

func (c *session) migrateStatus() *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Compare the schema with what this release needs",
		Long: `status says which version of the schema is applied, and which this release needs.
Exit code 1: they differ.`,
		Args: cobra.NoArgs,
		RunE: c.withStore(func(ctx context.Context, store *connect.Store, _ []string) error {
			if store.Schema == nil {
				return errNoSchema
			}
			return c.schemaStatus(ctx, store)
		}),
	}
}

// schemaStatus prints the state of the schema.
func (c *session) schemaStatus(ctx context.Context, store *connect.Store) error {
	bounded, cancel := store.Bounded(ctx)
	defer cancel()
	applied, err := store.Schema.Version(bounded)
	if err != nil {
		return storeFailed(ctx, "reading the version of the schema", err)
	}
	known := len(store.Schema.Migrations)
	if c.json {
		c.printJSON(statusJSON{Store: store.Name, Applied: applied, Known: known, Current: applied == known})
	}
	for _, m := range store.Schema.Migrations {
		mark := ui.Piece{Style: ui.Good, Text: "✓ "}
		if m.Version > applied {
			mark = ui.Piece{Style: ui.Warn, Text: "- "}
		}
		c.say(mark, m.Name)
	}
	switch {
	case applied > known:
		c.say("the schema has version ", strconv.Itoa(applied), ", newer than the ", strconv.Itoa(known), " that this release knows")
	case applied < known:
		c.say(ui.Noun(int64(known-applied), "migration is", "migrations are"), " missing: ", tableLine("migrate apply", store))
	default:
		c.say("the schema is what this release needs")
		return nil
	}
	return ended(ExitFindings)
}

func (c *session) migrateApply() *cobra.Command {
	return &cobra.Command{
		Use:   "apply",
		Short: "Bring the schema up to the version of this release",
		Long: `apply runs the missing migrations in one transaction. Its role must be allowed to
create tables. The application's role needs less: run reprise doctor with its URL
to see the GRANT lines that it lacks. A schema that is newer than this release stays
as it is.`,
		Args: cobra.NoArgs,
		RunE: c.withStore(func(ctx context.Context, store *connect.Store, _ []string) error {
			if store.Schema == nil {
				return errNoSchema
			}
			bounded, cancel := store.Bounded(ctx)
			defer cancel()
			if err := store.Schema.Migrate(bounded); err != nil {
				if errors.Is(bounded.Err(), context.DeadlineExceeded) {
					return unsafe("applying the migrations took longer than --timeout (%v), so they were rolled back: %w", store.Settings.Timeout, err)
				}
				return storeFailed(ctx, "applying the migrations", err)
			}
			return c.schemaStatus(ctx, store)
		}),
	}
}
