package command

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/reprise-go/reprise/cmd/reprise/internal/connect"
	"github.com/reprise-go/reprise/cmd/reprise/internal/ui"
)

// maxBatch is the largest --batch, which is that of the store.
const maxBatch = 100_000

// purgeJSON is a purge in the output for programs.
type purgeJSON struct {
	Deleted  int64   `json:"deleted"`
	Seconds  float64 `json:"seconds"`
	Complete bool    `json:"complete"`
}

// purge is the command "purge".
func (c *session) purge() *cobra.Command {
	var (
		batch int
		pause time.Duration
		most  int64
	)
	cmd := &cobra.Command{
		Use:   "purge",
		Short: "Delete the expired records of a store in a database",
		Long: `purge deletes the records whose retention has ended, in batches of one statement
each. If a record has a horizon, purge first deletes its response only, and the
rest after the horizon has ended; it counts both. An interrupt ends purge after
the current batch. purge never touches records that are live or were claimed
again. Redis needs no purge: it deletes such records itself.`,
		Args: cobra.NoArgs,
		PreRunE: func(*cobra.Command, []string) error {
			switch {
			case batch < 1 || batch > maxBatch:
				return usage("--batch is %d, want 1 to %d", batch, maxBatch)
			case pause < 0:
				return usage("--pause is %v, want 0 or more", pause)
			case most < 0:
				return usage("--limit is %d, want 0 or more", most)
			}
			return nil
		},
		RunE: c.withStore(func(ctx context.Context, store *connect.Store, _ []string) error {
			if store.Purger == nil {
				return usage("the server itself deletes records when their retention ends; purge is for a database")
			}
			return (&purging{c: c, store: store, batch: batch, pause: pause, most: most, progress: c.err.Progress()}).run(ctx)
		}),
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.IntVar(&batch, "batch", 1000, "how many records one statement deletes")
	flags.DurationVar(&pause, "pause", 0, "how long to wait between two batches, so that a busy server can do other work")
	flags.Int64Var(&most, "limit", 0, "stop after this many records; 0 deletes all")
	return cmd
}

// purging is one run of purge.
type purging struct {
	c        *session
	store    *connect.Store
	batch    int
	pause    time.Duration
	most     int64
	progress *ui.Progress
	deleted  int64
}

func (p *purging) run(ctx context.Context) error {
	done, err := p.all(ctx)
	p.progress.Clear()
	elapsed := p.progress.Elapsed()
	if p.c.json {
		p.c.printJSON(purgeJSON{Deleted: p.deleted, Seconds: seconds(elapsed), Complete: done})
	}
	if err != nil {
		p.c.err.Line(ui.Noun(p.deleted, "record was", "records were"), " deleted before")
		return storeFailed(ctx, "purging", err)
	}
	p.c.say(ui.Noun(p.deleted, "record", "records"), " deleted in ", ui.Duration(elapsed), p.rate(elapsed))
	if !done && ctx.Err() != nil {
		return &failure{code: ExitInterrupted, err: errors.New("interrupted between two batches; run it again to continue")}
	}
	return nil
}

// all purges batch after batch. It returns false where it stopped before the end.
func (p *purging) all(ctx context.Context) (done bool, err error) {
	for ctx.Err() == nil {
		size := p.batch
		if p.most > 0 {
			size = int(min(int64(size), p.most-p.deleted))
		}
		// Let a batch finish: stopping it would roll its work back.
		bounded, cancel := p.store.Bounded(context.WithoutCancel(ctx))
		n, err := p.store.Purger.Purge(bounded, size)
		cancel()
		if err != nil {
			return false, err
		}
		p.deleted += int64(n)
		p.show()
		if n < size {
			return true, nil
		}
		if p.most > 0 && p.deleted >= p.most {
			return false, nil
		}
		if p.pause > 0 {
			select {
			case <-ctx.Done():
			case <-time.After(p.pause):
			}
		}
	}
	return false, nil
}

// show shows the progress, as a share of the limit if there is one.
func (p *purging) show() {
	p.progress.Show(p.deleted, p.most, "%s deleted%s", ui.Count(p.deleted), p.rate(p.progress.Elapsed()))
}

// rate writes how many records go in a second.
func (p *purging) rate(elapsed time.Duration) string {
	if p.deleted == 0 || elapsed < 10*time.Millisecond {
		return ""
	}
	return ", " + ui.Count(int64(float64(p.deleted)/elapsed.Seconds())) + " a second"
}
