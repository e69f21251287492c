package protocol_test

import (
	"bytes"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/store"
)

// badError is an error whose text cannot be read.
type badError struct{}

func (badError) Error() string { panic("a bug") }

// An error beside a complete response changes neither the record nor, over a store whose
// effects commit with the response, the commit. The operator reads of it once for a run,
// Decide is told, and no key is in the text.
func TestR33dErrorBesideACompleteResponse(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status int
		err    error
		text   string // that is logged; empty: none is
	}{
		"a success":             {http.StatusCreated, errors.New("the mail was not sent"), "the mail was not sent"},
		"a redirect":            {http.StatusSeeOther, errors.New("the mail was not sent"), "the mail was not sent"},
		"a failure":             {http.StatusUnprocessableEntity, errors.New("no stock"), ""},
		"the first failure":     {http.StatusBadRequest, errors.New("no stock"), ""},
		"no error":              {http.StatusCreated, nil, ""},
		"with the key":          {http.StatusCreated, errors.New("duplicate key: k-of-the-client"), "(withheld: it contained the key)"},
		"that cannot be read":   {http.StatusCreated, badError{}, "reported error panicked"},
		"with a status of none": {http.StatusNoContent, http.ErrBodyNotAllowed, http.ErrBodyNotAllowed.Error()},
	} {
		for _, preset := range []reprise.Preset{reprise.Recoverable, reprise.AtMostOnce} {
			for _, atomic := range []bool{false, true} {
				records := atomically(memstore.New())
				var st store.Store = records.Store
				if atomic {
					st = records
				}
				var told []error
				var out bytes.Buffer
				log := slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelWarn}))
				b := setupOver(t, st, protocol.Config{Engine: reprise.Config{Log: log}, Label: "orders", Preset: preset, Keep: protocol.Keeping{Decide: func(e protocol.Ending) protocol.Decision {
					told = append(told, e.Reported)
					return protocol.ByPreset
				}}})
				var id store.ID
				first := b.run("k-of-the-client", func(w *protocol.Recorder, _ http.Header, x *protocol.Exchange) {
					view, _ := reprise.AttemptFrom(x.Context())
					id = view.ID()
					w.WriteHeader(c.status)
					if c.status != http.StatusNoContent {
						_, _ = w.WriteString("done")
					}
					if c.err != nil {
						w.Report(c.err)
						w.Report(errors.New("a second one"))
					}
				})
				again := b.replay("k-of-the-client")
				if first.Code != c.status || again.Code != c.status || again.Body.String() != first.Body.String() {
					t.Errorf("%s: %d %q, then %d %q", name, first.Code, first.Body, again.Code, again.Body)
				}
				if len(told) != 1 || told[0] != c.err { //nolint:errorlint // the value itself
					t.Errorf("%s: Decide was told %v", name, told)
				}
				if atomic && slices.Contains(records.Calls, "rollback") != (c.status >= 400) {
					t.Errorf("%s: the transaction was called %v", name, records.Calls)
				}
				lines := strings.Count(out.String(), "an error beside a complete response")
				switch {
				case c.text == "" && lines == 0:
				case lines != 1 || !strings.Contains(out.String(), c.text) || c.text == "":
					t.Errorf("%s: logged %s", name, &out)
				case !strings.Contains(out.String(), "label=orders id="+id.Short()):
					t.Errorf("%s: the log does not name the record: %s", name, &out)
				}
				if strings.Contains(out.String(), "k-of-the-client") {
					t.Errorf("%s: the log has the key: %s", name, &out)
				}
			}
		}
	}
}

// logged returns a guard, its log, and the events that it reports.
func logged(t *testing.T, cfg protocol.Config) (*protocol.Guard, *strings.Builder, *eventLog) {
	t.Helper()
	lines, log := new(strings.Builder), new(eventLog)
	cfg.Engine = reprise.Config{Log: slog.New(slog.NewTextHandler(lines, nil)), MaxRun: -1, Observer: log}
	return setup(t, cfg).guard, lines, log
}

// reasonsOf returns the reasons of the events of a kind.
func (l *eventLog) reasonsOf(kind *reprise.EventKind) (reasons []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.events {
		if e.Kind == kind {
			reasons = append(reasons, e.Reason)
		}
	}
	return reasons
}

// Logs, metrics and alerts rely on these names, and operators get every event.
func TestNamesOfTheEventsOfAGuard(t *testing.T) {
	t.Parallel()
	guard, lines, _ := logged(t, protocol.Config{})
	for name, kind := range map[string]*reprise.EventKind{
		"panic": protocol.EventPanic, "blob-error": protocol.EventBlobError, "description-withheld": protocol.EventDescription,
		"error-reported": protocol.EventReported, "body-consumed": protocol.EventBodyConsumed, "body-omitted": protocol.EventBodyOmitted,
	} {
		guard.Engine().Report(t.Context(), reprise.Event{Kind: kind})
		if says := "level=" + kind.Level.String() + " msg=\"" + kind.Message; kind.Name != name || strings.Count(lines.String(), says) != 1 {
			t.Errorf("%q, want %q, and %s in the log:\n%s", kind.Name, name, says, lines)
		}
	}
}

// R50: a consumed body is reported once for each policy, with the likely mistake, and
// with no data of the request.
func TestR50WarnsOfAConsumedBodyOnce(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		rest   string
		length int64
		want   string
	}{
		"nothing is left":                    {"", 9, "read the body and did not put it back; "},
		"nothing is left, of unknown length": {"", -1, "or the client sent an empty body of unknown length"},
		"a rest":                             {"secret", 9, "decoded a value"},
		"white space":                        {"\n", -1, "decoded a value"},
		"a whole body":                       {"secret", 6, ""},
	} {
		guard, lines, log := logged(t, protocol.Config{Label: "orders"})
		other := must(guard.With(func(c *protocol.Config) { c.Label = "refunds" }))
		for _, g := range []*protocol.Guard{guard, guard, other, other} {
			a := g.Admit(t.Context(), protocol.Request{
				Method: "POST", Body: strings.NewReader(c.rest), Length: c.length,
				Header: http.Header{"Idempotency-Key": {"a-secret-key-" + g.Config().Label}, "Content-Type": {"application/json"}},
			}, scope)
			if a.Exchange != nil {
				finish(a.Exchange, 201)
			}
		}
		reasons := log.reasonsOf(protocol.EventBodyConsumed)
		text := lines.String()
		if c.want == "" {
			if len(reasons) != 0 || strings.Contains(text, "WARN") {
				t.Errorf("%s: reported %q:\n%s", name, reasons, text)
			}
			continue
		}
		if len(reasons) != 2 || !strings.Contains(reasons[0], c.want) || strings.Count(text, "is left of its body") != 2 ||
			!strings.Contains(text, "label=orders reason=") || !strings.Contains(text, "label=refunds reason=") || strings.Contains(text, "secret") {
			t.Errorf("%s: reported %q:\n%s", name, reasons, text)
		}
	}
}

// R35: the first body that is not kept because it is too large is reported, with the
// limit to raise.
func TestR35WarnsOfAnOmittedBodyOnce(t *testing.T) {
	t.Parallel()
	offload := protocol.Offloading{Blobs: &blobs{}, MaxBody: 200}
	for name, c := range map[string]struct {
		cfg  protocol.Config
		size int
		omit bool // the handler says so
		want string
	}{
		"over the limit":              {protocol.Config{}, 101, false, "Config.Limits.ResponseBody, 100 bytes: raise the limit, or"},
		"over the limit, unavailable": {protocol.Config{Oversize: protocol.Unavailable}, 101, false, "Config.Limits.ResponseBody, 100 bytes"},
		"over that of blobs":          {protocol.Config{Offload: offload}, 201, false, "Config.Offload.MaxBody, 200 bytes"},
		"in a blob":                   {protocol.Config{Offload: offload}, 200, false, ""},
		"at the limit":                {protocol.Config{}, 100, false, ""},
		"left out by the handler":     {protocol.Config{}, 101, true, ""},
	} {
		c.cfg.Limits.ResponseBody = 100
		guard, lines, log := logged(t, c.cfg)
		for _, key := range []string{"a-secret-key-1", "a-secret-key-2"} {
			a := guard.Admit(t.Context(), protocol.Request{Method: "POST", Header: http.Header{"Idempotency-Key": {key}}}, scope)
			if c.omit {
				protocol.OmitBody(a.Exchange.Context())
			}
			a.Exchange.Finish(protocol.Captured{Status: 200, Body: []byte(strings.Repeat("s", c.size))})
			a.Exchange.Close()
		}
		reasons := log.reasonsOf(protocol.EventBodyOmitted)
		n := strings.Count(lines.String(), "is not kept, because it is too large")
		if c.want == "" && len(reasons)+n > 0 || c.want != "" && (n != 1 || len(reasons) != 1 || !strings.Contains(reasons[0], c.want)) || strings.Contains(lines.String(), "secret") {
			t.Errorf("%s: reported %q, and %d times in the log:\n%s", name, reasons, n, lines)
		}
	}
}
