package command

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/reprise-go/reprise/core/store"

	"github.com/reprise-go/reprise/cmd/reprise/internal/connect"
	"github.com/reprise-go/reprise/cmd/reprise/internal/safe"
	"github.com/reprise-go/reprise/cmd/reprise/internal/ui"
)

// diagnosis is the result of doctor.
type diagnosis struct {
	Store    string        `json:"store"`
	Status   string        `json:"status"` // fine, warning or unsafe
	Findings []findingJSON `json:"findings"`
	Trial    string        `json:"trial"` // passed, failed or skipped
	Latency  float64       `json:"latency_seconds,omitempty"`

	NotExamined []string `json:"not_examined,omitempty"` // codes of findings about the pool of the service, which this program cannot see
}

// findingJSON is a finding with its remedy.
type findingJSON struct {
	Code     string   `json:"code"`
	Severity string   `json:"severity"`
	Detail   string   `json:"detail"`
	Paste    []string `json:"paste,omitempty"`
}

// Why a trial did not happen.
const (
	trialPassed  = "passed"
	trialFailed  = "failed"
	trialSkipped = "skipped"
)

// doctor is the command "doctor".
func (c *session) doctor() *cobra.Command {
	var untried bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check the server, and say what to change",
		Long: `doctor examines the server. It reports what would break a guarantee (✗) and what
costs safety margin or time (!), each with the line to paste. It runs every
operation once, on records that it deletes again and that no listing shows.

It is a gate for deployments: run it with the settings of the new release before
that release gets requests. Exit code 0: all is well; 1: warnings; 2: the command
line is wrong; 3: a guarantee does not hold, or the store does not answer within
--timeout. It is not a readiness probe for a running process.

doctor uses a PostgreSQL pool of its own and does not see that of the service. To
judge that one, too, put its settings into the URL, such as
?pool_max_conns=16&default_query_exec_mode=exec, and pass --service-pool.`,
		Args: cobra.NoArgs,
		RunE: c.withStore(func(ctx context.Context, store *connect.Store, _ []string) error {
			bounded, cancel := store.Bounded(ctx)
			defer cancel()
			d := diagnose(bounded, store, !untried)
			if errors.Is(ctx.Err(), context.Canceled) {
				return &failure{code: ExitInterrupted, err: errors.New("interrupted")}
			}
			c.report(d)
			switch d.Status {
			case "unsafe":
				return ended(ExitUnsafe)
			case "warning":
				return ended(ExitFindings)
			}
			return nil
		}),
	}
	cmd.Flags().BoolVar(&c.settings.ServicePool, "service-pool", false, "judge the pool settings in the PostgreSQL URL, as those of the service")
	cmd.Flags().BoolVar(&untried, "no-trial", false, "write nothing: leave out the trial of the operations")
	return cmd
}

// diagnose checks a store.
func diagnose(ctx context.Context, store *connect.Store, try bool) *diagnosis {
	d := &diagnosis{Store: store.Name, Status: "fine", Findings: []findingJSON{}, Trial: trialSkipped, NotExamined: store.Unexamined}
	list, err := store.Check.Check(ctx)
	if err != nil {
		d.add(store, failedFinding(ctx, store, err))
		return d
	}
	if f, found := store.CertificateFinding(nil, time.Now()); found {
		list = append(list, f)
	}
	for _, f := range list {
		if !slices.Contains(store.Unexamined, f.Code) {
			d.add(store, f)
		}
	}
	if d.Status == "unsafe" {
		return d
	}
	if try {
		if err := store.Prove(ctx); err != nil {
			d.Trial = trialFailed
			d.add(store, failedFinding(ctx, store, err))
			return d
		}
		d.Trial = trialPassed
	}
	latency, err := store.Latency(ctx)
	if err != nil {
		d.add(store, failedFinding(ctx, store, err))
		return d
	}
	d.Latency = seconds(latency.Round(time.Millisecond / 10))
	if d.Latency == 0 {
		d.Latency = latency.Seconds()
	}
	return d
}

func (d *diagnosis) add(st *connect.Store, f store.Finding) {
	d.Findings = append(d.Findings, findingJSON{
		Code: f.Code, Severity: f.Severity.String(), Detail: safe.Fold(st.Redact(f.Detail)), Paste: remedy(st, &f),
	})
	switch {
	case f.Severity == store.Unsafe:
		d.Status = "unsafe"
	case d.Status == "fine":
		d.Status = "warning"
	}
}

// failedFinding turns an error of the store into a finding.
func failedFinding(ctx context.Context, st *connect.Store, err error) store.Finding {
	f := store.Finding{Code: "unreachable", Severity: store.Unsafe, Detail: err.Error()}
	switch failed, found := st.CertificateFinding(err, time.Now()); {
	case found:
		return failed
	case ctx.Err() != nil:
		f.Code, f.Detail = "timeout", "no answer within "+st.Settings.Timeout.String()+": "+err.Error()
	case errors.Is(err, store.ErrMisconfigured):
		f.Code = "refused"
	}
	return f
}

// report prints a diagnosis.
func (c *session) report(d *diagnosis) {
	if c.json {
		c.printJSON(d)
		return
	}
	c.out.Line(ui.Piece{Style: ui.Strong, Text: d.Store})
	unsafe, warnings := 0, 0
	for i := range d.Findings {
		f := &d.Findings[i]
		mark := ui.Piece{Style: ui.Warn, Text: "! "}
		if f.Severity == store.Unsafe.String() {
			mark = ui.Piece{Style: ui.Bad, Text: "✗ "}
			unsafe++
		} else {
			warnings++
		}
		c.out.Line(mark, ui.Piece{Style: ui.Strong, Text: f.Code}, ": ", f.Detail)
		for _, line := range f.Paste {
			c.out.Line("    ", line)
		}
	}
	good := ui.Piece{Style: ui.Good, Text: "✓ "}
	switch d.Trial {
	case trialPassed:
		c.out.Line(good, "every operation works (tried on temporary records)")
	case trialSkipped:
		c.out.Line(ui.Paint(ui.Faint, "- the operations were not tried"))
	}
	if len(d.NotExamined) > 0 {
		c.out.Line(ui.Paint(ui.Faint, "- not checked, because it depends on the pool of the service (Open in the service reports it): %s", strings.Join(d.NotExamined, ", ")))
	}
	if d.Latency > 0 {
		c.out.Line(good, "a read takes ", ui.Duration(time.Duration(d.Latency*float64(time.Second))))
	}
	switch {
	case unsafe > 0:
		c.out.Line(ui.Paint(ui.Bad, "unsafe: %s", ui.Noun(int64(unsafe), "finding has to be resolved", "findings have to be resolved")))
	case warnings > 0:
		c.out.Line(ui.Paint(ui.Warn, "safe, with %s", ui.Noun(int64(warnings), "warning", "warnings")))
	default:
		c.out.Line(ui.Paint(ui.Good, "fine"))
	}
}
