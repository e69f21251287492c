package command

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/reprise-go/reprise/cmd/reprise/internal/judge"
	"github.com/reprise-go/reprise/cmd/reprise/internal/judge/wire"
	"github.com/reprise-go/reprise/cmd/reprise/internal/safe"
	"github.com/reprise-go/reprise/cmd/reprise/internal/ui"
)

// judgeFlags are the flags of the command "judge", before they are parsed.
type judgeFlags struct {
	options             judge.Options
	profile, executions string
	other, restart      string
	fields, scopes      []string
	own, list           bool
}

// judge is the command "judge".
func (c *session) judge() *cobra.Command {
	var f judgeFlags
	cmd := &cobra.Command{
		Use:   "judge URL...",
		Short: "Judge how a service in any language keeps the Idempotency-Key header",
		Long: `judge sends requests to one endpoint of a running service, and says which rules of
a profile its answers keep. It uses only HTTP: the service may be written in any
language. The endpoint has to answer POST with a 2xx whose body differs from run
to run, such as a new ID, within ten seconds;
https://github.com/reprise-go/reprise/blob/main/docs/guides/judge.md has one for Gin
and one for Express. With an endpoint that follows programs, as described there, judge
can check more rules. Further URLs are of the same endpoint at other addresses of the
service.

The requests are real: each run of the endpoint does its work. judge sends at most
5,000 requests and 512 MiB, to loopback addresses only, unless --i-own-this says that
the service is yours.

A rule that judge could not check is listed as not shown, and does not count as
passed. An operation that ran twice, or an answer that belongs to another request,
breaks a must in every profile. Exit code 0: no must is broken; 1: one is; 2: the
command line is wrong, the endpoint cannot be judged, or the run ended early; 3: no
server answers.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if f.list {
				return cobra.NoArgs(cmd, args)
			}
			return cobra.MinimumNArgs(1)(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.complete(args); err != nil {
				return err
			}
			if f.list {
				c.listCases(f.options.Profile, f.options.Only)
				return nil
			}
			return c.runJudge(cmd.Context(), &f)
		},
	}
	f.register(cmd.Flags())
	return cmd
}

func (f *judgeFlags) register(flags *pflag.FlagSet) {
	o := &f.options
	flags.SortFlags = false
	flags.StringVar(&f.profile, "profile", judge.Reprise.Name, "the rules: "+profileNames())
	flags.StringSliceVar(&o.Only, "only", nil, "judge these cases and groups only")
	flags.BoolVar(&f.list, "list", false, "print the cases of the profile, and send nothing")
	flags.StringVar(&o.Header, "key-header", "Idempotency-Key", "the `name` of the header field")
	flags.StringArrayVar(&f.fields, "field", nil, "send this header field, `'Name: value'`, with each request; may be repeated")
	flags.StringVar(&o.Body, "body", `{"judge":"a"}`, "the `text` of the requests' body")
	flags.StringVar(&o.Another, "other-body", `{"judge":"b"}`, "a different `text` that the endpoint takes as well")
	flags.StringArrayVar(&f.scopes, "scope", nil, "the header field, `'Name: value'`, that identifies a principal; pass it twice, for two principals")
	flags.StringVar(&f.other, "other", "", "the `URL` of another endpoint of the service that takes the body")
	flags.StringVar(&f.executions, "executions", "", "a `URL` that answers how often the endpoint ran")
	flags.StringVar(&f.restart, "restart", "", "a shell `command` that kills the service and starts it again")
	flags.DurationVar(&o.Retention, "retention", 0, "how long the service remembers a key; judge waits that long twice")
	flags.BoolVar(&f.own, "i-own-this", false, "judge a service that is not on this machine")
	flags.DurationVar(&o.MaxTime, "max-time", 10*time.Minute, "end after this time")
	flags.DurationVar(&o.Slow, "slow", time.Second, "the length of a run that others overlap")
	_ = flags.MarkHidden("slow") // for tests, whose services answer fast
}

func profileNames() string {
	names := make([]string, len(judge.Profiles))
	for i, p := range judge.Profiles {
		names[i] = p.Name
	}
	return strings.Join(names, ", ")
}

// complete parses the values of the flags.
func (f *judgeFlags) complete(args []string) (err error) {
	o := &f.options
	for _, p := range judge.Profiles {
		if p.Name == f.profile {
			o.Profile = p
		}
	}
	if o.Profile == nil {
		return usage("--profile is %q, want one of %s", f.profile, profileNames())
	}
	if name := o.Profile.Unknown(o.Only); name != "" {
		return usage("--only: the profile %s has no case or group %q; --list prints them", f.profile, name)
	}
	if f.list {
		return nil
	}
	for _, raw := range args {
		u, err := parseTarget("the argument", raw)
		if err != nil {
			return err
		}
		o.Also = append(o.Also, u)
	}
	o.URL, o.Also = o.Also[0], o.Also[1:]
	for flag, to := range map[string]struct {
		raw    string
		parsed **url.URL
	}{"--other": {f.other, &o.Other}, "--executions": {f.executions, &o.Executions}} {
		if to.raw == "" {
			continue
		}
		if *to.parsed, err = parseTarget(flag, to.raw); err != nil {
			return err
		}
	}
	o.Fields = []wire.Field{{Name: "Content-Type", Value: "application/json"}}
	for _, raw := range f.fields {
		field, err := parseField("--field", raw)
		if err != nil {
			return err
		}
		if strings.EqualFold(field.Name, "Content-Type") {
			o.Fields[0] = field
			continue
		}
		o.Fields = append(o.Fields, field)
	}
	for _, raw := range f.scopes {
		field, err := parseField("--scope", raw)
		if err != nil {
			return err
		}
		o.Scopes = append(o.Scopes, field)
	}
	if n := len(o.Scopes); n == 1 || n > 2 {
		return usage("--scope is given %d times, want twice: for two principals", n)
	}
	if o.Body == o.Another {
		return usage("--other-body is the same as --body")
	}
	if o.MaxTime <= 0 || o.Slow <= 0 || o.Retention < 0 {
		return usage("--max-time must be positive, and --retention not negative")
	}
	if f.restart != "" {
		o.Restart = func(ctx context.Context) error {
			return runCommand(ctx, f.restart)
		}
	}
	if !isToken(o.Header) {
		return usage("--key-header wants one word of letters, digits and dashes")
	}
	o.Parallel, o.Version = 16, built().Version
	o.Client = &wire.Client{Guard: wire.Guard{Own: f.own}, Limits: wire.Limits{Requests: 5000, Bytes: 512 << 20, Timeout: 10 * time.Second}}
	return nil
}

// runCommand runs a shell command, whose output is part of the error. The output goes to
// a file, because a service that the command starts would keep a pipe open, and Run would
// wait for it.
func runCommand(ctx context.Context, command string) error {
	out, err := os.CreateTemp("", "reprise-judge-")
	if err != nil {
		return err
	}
	defer out.Close()
	defer os.Remove(out.Name())
	cmd := exec.CommandContext(ctx, "sh", "-c", command) //nolint:gosec // the operator's own command
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Run(); err != nil {
		const most = 1 << 10
		said := make([]byte, most)
		n, _ := out.ReadAt(said, 0)
		return fmt.Errorf("%w: %s", err, strings.TrimSpace(string(said[:n])))
	}
	return nil
}

func parseTarget(from, raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.Fragment != "" {
		return nil, usage("%s is %q, want a URL such as http://127.0.0.1:8080/orders", from, raw)
	}
	return u, nil
}

func parseField(from, raw string) (wire.Field, error) {
	name, value, found := strings.Cut(raw, ":")
	if value = strings.TrimSpace(value); !found || !isToken(name) || strings.ContainsAny(value, "\r\n") {
		return wire.Field{}, usage("%s wants 'Name: value'", from) // the value may be a secret
	}
	return wire.Field{Name: name, Value: value}, nil
}

// isToken reports whether a name is a token of RFC 9110, section 5.6.2.
func isToken(name string) bool {
	for _, r := range name {
		if !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("!#$%&'*+-.^_`|~", r)) {
			return false
		}
	}
	return name != ""
}

// listCases prints the cases of a profile.
func (c *session) listCases(p *judge.Profile, only []string) {
	type caseJSON struct {
		ID       string `json:"id"`
		Level    string `json:"level"`
		Sentence string `json:"sentence"`
		Source   string `json:"source"`
	}
	list := []caseJSON{}
	for _, k := range p.Cases(only) {
		list = append(list, caseJSON{k.ID, p.Level(k).String(), k.Sentence, k.Source})
	}
	if c.json {
		c.printJSON(list)
		return
	}
	table := ui.NewTable("CASE", "LEVEL", "~SENTENCE", "?SOURCE")
	for _, k := range list {
		table.Row(ui.Piece{Text: k.ID}, ui.Piece{Text: k.Level}, ui.Piece{Text: k.Sentence}, ui.Paint(ui.Faint, "%s", k.Source))
	}
	c.out.Table(table, false)
}

// runJudge judges a service and prints the report.
func (c *session) runJudge(ctx context.Context, f *judgeFlags) error {
	progress := c.err.Progress()
	report, err := judge.Run(ctx, &f.options, func(done, all int, id string) { progress.Show(int64(done), int64(all), "%s", id) })
	progress.Clear()
	if err != nil {
		return judgeFailed(ctx, err)
	}
	if c.json {
		c.printJSON(report)
	} else {
		c.printJudgement(report)
	}
	switch {
	case report.Failed():
		return ended(ExitFindings)
	case report.Ended != "":
		return usage("the run ended early: %s", report.Ended)
	default:
		return nil
	}
}

// judgeFailed returns the failure of a service that could not be judged.
func judgeFailed(ctx context.Context, err error) error {
	var forbidden *wire.ForbiddenError
	var unusable *judge.UnusableError
	switch {
	case ctx.Err() != nil:
		return &failure{code: ExitInterrupted, err: errors.New("interrupted")}
	case errors.As(err, &forbidden), errors.As(err, &unusable):
		return usage("%w", err)
	default:
		return unsafe("no answer from the service: %w", err)
	}
}

// printJudgement prints a report for a person.
func (c *session) printJudgement(r *judge.Report) {
	c.out.Line(ui.Paint(ui.Strong, "%s", r.Options.Profile.Title), " at ", r.Options.URL.Redacted())
	for _, note := range r.Facts.Notes {
		c.out.Line(ui.Paint(ui.Faint, "- %s", note))
	}
	marks := map[judge.State]ui.Piece{judge.Met: {Style: ui.Good, Text: "✓"}, judge.NotMet: {Style: ui.Bad, Text: "✗"}, judge.NotShown: {Style: ui.Faint, Text: "-"}}
	table := ui.NewTable("", "CASE", "LEVEL", "~SENTENCE")
	for _, result := range r.Results {
		mark, text := marks[result.State], ui.Piece{Text: result.Case.Sentence}
		if result.State == judge.NotMet && result.Level != judge.Must {
			mark = ui.Piece{Style: ui.Warn, Text: "!"}
		}
		table.Row(mark, ui.Piece{Text: result.Case.ID}, ui.Piece{Text: result.Level.String()}, text)
		if result.Detail != "" {
			detail := ui.Paint(mark.Style, "%s: %s", result.State, safe.Fold(result.Detail))
			table.Row(ui.Piece{}, ui.Piece{}, ui.Piece{}, detail)
		}
	}
	c.out.Table(table, false)
	for _, l := range []judge.Level{judge.Must, judge.Should, judge.May} {
		if s := r.Summary(l); s != (judge.Summary{}) {
			c.out.Line(fmt.Sprintf("%s: %d met, %d not met, %d not shown", l, s.Met, s.NotMet, s.NotShown))
		}
	}
	c.out.Line(ui.Paint(ui.Faint, "%s, %s in %s", ui.Noun(r.Requests, "request", "requests"), ui.Bytes(r.Bytes), ui.Duration(r.Elapsed)))
}
