package operate_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/operate"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/store"
)

// left leaves a record in a state, and returns it.
func left(t *testing.T, st *memstore.Store, id store.ID, state store.RecordState) store.Record {
	t.Helper()
	leave(t, st, store.ClaimRequest{
		ID: id, Owner: store.NewOwner(), Policy: store.Policy{Label: "orders", Retention: time.Hour, Horizon: 24 * time.Hour}, Lease: time.Minute,
	}, state, []byte("{}"))
	record, err := st.Inspect(t.Context(), id)
	if err != nil || record.State != state {
		t.Fatal(record.State, err)
	}
	return record
}

// noting is an inspector that notes the resolutions, and shows one record as unreadable.
type noting struct {
	store.Inspector
	unreadable bool
	made       *[]store.Resolution
	err        error
}

func (n noting) Inspect(ctx context.Context, id store.ID) (store.Record, error) {
	if n.unreadable {
		return store.Record{ID: id, State: store.StateUnreadable, Fence: 9}, nil
	}
	return n.Inspector.Inspect(ctx, id)
}

func (n noting) Resolve(ctx context.Context, id store.ID, r store.Resolution) error {
	*n.made = append(*n.made, r)
	if n.err != nil || n.unreadable {
		return n.err
	}
	return n.Inspector.Resolve(ctx, id, r)
}

// The table of resolutions: what can be answered and forgotten in each state, and with
// whose agreement.
func TestResolveAllowsWhatTheStateAllows(t *testing.T) {
	t.Parallel()
	for state := store.StateRunning; state <= store.StateUnknown; state++ {
		attempt := state == store.StateLapsed || state == store.StateUnknown
		ended := state != store.StateRunning && !attempt
		for what, allowed := range map[string]bool{"answer": attempt, "answer, again": false, "forget": attempt, "forget, again": ended} {
			inTimeNamed(t, state.String()+"/"+what, func(t *testing.T) {
				records, made := memstore.New(), []store.Resolution(nil)
				in := noting{Inspector: records, unreadable: state == store.StateUnreadable, made: &made}
				seen := store.Record{ID: store.ID{1}, State: state, Fence: 9}
				if !in.unreadable {
					seen = left(t, records, store.ID{1}, state)
				}
				lines := new(bytes.Buffer)
				r := operate.Resolution{
					ID: seen.ID, State: seen.State, Fence: seen.Fence, Answer: protocol.Response{Status: 201}, Reason: "looked at", Operator: "ann",
					Forget: strings.HasPrefix(what, "forget"), RunAgain: strings.HasSuffix(what, "again"),
				}
				next, checked := r.Check(&seen)
				err := operate.Resolve(t.Context(), in, r, slog.NewJSONHandler(lines, nil))
				if (err == nil) != allowed || (checked == nil) != allowed || !allowed && !errors.Is(err, store.ErrInvalid) {
					t.Fatalf("%v, %v", checked, err)
				}
				if allowed && (next.Outcome == reprise.Claimed) != r.Forget {
					t.Errorf("the client gets %+v", next)
				}
				if want := map[bool]int{true: 2}[allowed]; strings.Count(lines.String(), "\n") != want || len(made) != want/2 {
					t.Errorf("changes %+v, and the log has\n%s", made, lines)
				}
				if allowed && !r.Forget && made[0].Retention != time.Hour {
					t.Errorf("the answer is kept for %v", made[0].Retention)
				}
			})
		}
	}
}

// failing is an audit log that cannot be written.
type failing struct{ slog.Handler }

func (failing) Handle(context.Context, slog.Record) error {
	return errors.New("no space left on device")
}

func TestResolveChangesNothingThatItCannotLog(t *testing.T) {
	inTime(t, func(t *testing.T) {
		records := memstore.New()
		seen := left(t, records, store.ID{1}, store.StateUnknown)
		err := operate.Resolve(t.Context(), records, operate.Resolution{
			ID: seen.ID, State: seen.State, Fence: seen.Fence, Forget: true, Reason: "looked at", Operator: "ann",
		}, failing{slog.DiscardHandler})
		if !errors.Is(err, operate.ErrNotAudited) || !strings.Contains(err.Error(), "no space left") {
			t.Error(err)
		}
		if now, err := records.Inspect(t.Context(), seen.ID); err != nil || now.State != store.StateUnknown {
			t.Error(now.State, err)
		}
	})
}

func TestResolveRefusesWithoutATrace(t *testing.T) {
	t.Parallel()
	strict := must(protocol.New(memstore.New(), protocol.Config{Label: "orders", Seal: protocol.Sealing{Secret: secret(t, "2026-11"), Strict: true}}))
	open := must(protocol.New(memstore.New(), protocol.Config{Label: "orders"}))
	for name, c := range map[string]struct {
		change func(*operate.Resolution)
		want   error
		text   string
	}{
		"nothing":              {func(*operate.Resolution) {}, nil, ""},
		"a policy that reads":  {func(r *operate.Resolution) { r.Guards = []*protocol.Guard{open} }, nil, ""},
		"two of its name":      {func(r *operate.Resolution) { r.Guards = []*protocol.Guard{strict, open} }, nil, ""},
		"a strict policy":      {func(r *operate.Resolution) { r.Guards = []*protocol.Guard{strict} }, store.ErrInvalid, "Config.Seal.Strict"},
		"no reason":            {func(r *operate.Resolution) { r.Reason = "" }, store.ErrInvalid, "reason"},
		"no operator":          {func(r *operate.Resolution) { r.Operator = "" }, store.ErrInvalid, "operator"},
		"another fence":        {func(r *operate.Resolution) { r.Fence++ }, store.ErrRecordChanged, "fence"},
		"another state":        {func(r *operate.Resolution) { r.State = store.StateLapsed }, store.ErrRecordChanged, "lapsed"},
		"no such record":       {func(r *operate.Resolution) { r.ID[1]++ }, store.ErrNotFound, ""},
		"no status":            {func(r *operate.Resolution) { r.Answer.Status = 0 }, store.ErrInvalid, "status"},
		"an invalid retention": {func(r *operate.Resolution) { r.Retention = -time.Second }, store.ErrInvalid, "Retention"},
	} {
		inTimeNamed(t, name, func(t *testing.T) {
			records, lines := memstore.New(), new(bytes.Buffer)
			seen := left(t, records, store.ID{1}, store.StateUnknown)
			r := operate.Resolution{
				ID: seen.ID, State: seen.State, Fence: seen.Fence, Answer: protocol.Response{Status: 201}, Reason: "looked at", Operator: "ann",
			}
			c.change(&r)
			err := operate.Resolve(t.Context(), records, r, slog.NewJSONHandler(lines, nil))
			if !errors.Is(err, c.want) || err != nil && !strings.Contains(err.Error(), c.text) {
				t.Error(err)
			}
			now, failed := records.Inspect(t.Context(), seen.ID)
			if failed != nil || (now.State == store.StateUnknown) != (c.want != nil) || (lines.Len() == 0) != (c.want != nil) {
				t.Errorf("the record is %v, %v; the log has %s", now.State, failed, lines)
			}
		})
	}
}

// Both lines name the record, the decision and the operator, and the second one the
// failure. The observer gets the changes that were made, and no others.
func TestResolveLeavesATrail(t *testing.T) {
	t.Parallel()
	for _, failure := range []error{nil, store.ErrUnknown} {
		synctest.Test(t, func(t *testing.T) {
			records, lines := memstore.New(), new(bytes.Buffer)
			var events []reprise.Event
			engine := must(reprise.New(records, reprise.Config{Observer: reprise.ObserverFunc(func(_ context.Context, e reprise.Event) { events = append(events, e) })}))
			seen := left(t, records, store.ID{1}, store.StateUnknown)
			err := operate.Resolve(t.Context(), noting{Inspector: records, made: new([]store.Resolution), err: failure}, operate.Resolution{
				ID: seen.ID, State: seen.State, Fence: seen.Fence, Answer: protocol.Response{Status: 201, Body: []byte("confidential")},
				Reason: "INC-204", Operator: "ann", Engine: engine,
			}, slog.NewJSONHandler(lines, nil))
			if !errors.Is(err, failure) {
				t.Error(err)
			}
			for _, part := range []string{seen.ID.String(), "INC-204", `"operator":"ann"`, `"state":"unknown"`, `"label":"orders"`, `"status":201`, `"body_bytes":12`} {
				if strings.Count(lines.String(), part) != 2 {
					t.Errorf("%s is not in both lines of\n%s", part, lines)
				}
			}
			if strings.Contains(lines.String(), "confidential") || strings.Contains(lines.String(), `"level":"ERROR"`) != (failure != nil) {
				t.Errorf("the log has\n%s", lines)
			}
			got := fmt.Sprint(events)
			switch {
			case failure != nil:
				if len(events) > 0 {
					t.Error("a change that failed is reported:", got)
				}
			case len(events) != 1 || events[0].Name() != "resolved" || events[0].Label != "orders" || events[0].Operator != "ann" ||
				events[0].Reason != "INC-204" || events[0].State != store.StateUnknown || events[0].Forgotten:
				t.Error(got)
			}
		})
	}
}
