package console_test

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/reprise-go/reprise/console"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/store"
)

// Several records are resolved by one form. Each is fenced and logged as if it were
// alone, and the page has the result of each.
func TestSeveralRecordsAreResolvedByOneForm(t *testing.T) {
	inTime(t, func(b *bench) {
		first, fence := b.lapsed("first")
		second, _ := b.lapsed("second")
		gone, goneFence := b.lapsed("gone")
		kept := b.answered("kept", protocol.Response{Status: 503})
		value := func(id store.ID) string {
			record, err := b.store.Inspect(b.Context(), id)
			must(b, err)
			return fmt.Sprint(id, " ", record.State, " ", record.Fence)
		}
		form := url.Values{"store": {"main"}, "record": {value(first), value(second), value(gone), value(kept)}}
		got := b.get("/records?all=1")
		for _, picked := range form["record"] {
			if !strings.Contains(got.raw, `value="`+picked+`" aria-label="Select `+picked[:12]+`" checked`) {
				b.Errorf("%s is not selected: %s", picked, got.raw)
			}
		}
		must(b, b.store.Resolve(b.Context(), gone, store.Resolution{State: store.StateLapsed, Fence: goneFence, Forget: true}))
		b.want("form", b.post("/several", form), 200, first.Short(), second.Short(), kept.Short(), "There is no record with this ID", "type <code>answer 3</code>", "409 outcome-unknown")

		typed := answerForm(first, fence)
		for _, name := range []string{"status", "content-type", "header", "body", "reason", "action"} {
			form.Set(name, typed.Get(name))
		}
		form.Set("body-"+second.String(), `{"id":18}`)
		for what, change := range map[string]func(url.Values){
			"another number":    func(v url.Values) { v.Set("confirm", "answer 4") },
			"another action":    func(v url.Values) { v.Set("confirm", "forget 3") },
			"no reason":         func(v url.Values) { v.Set("confirm", "answer 3"); v.Del("reason") },
			"no status":         func(v url.Values) { v.Set("confirm", "answer 3"); v.Set("status", "") },
			"no record":         func(v url.Values) { v.Set("confirm", "answer 0"); v.Del("record") },
			"what is no record": func(v url.Values) { v.Set("record", first.String()) },
			"too many":          func(v url.Values) { v.Set("confirm", "answer 250"); v["record"] = slices.Repeat(v["record"][:1], 250) },
		} {
			wrong := maps.Clone(form)
			change(wrong)
			b.want(what, b.post("/several", wrong), 422, "Nothing was changed")
		}
		form.Set("confirm", "answer 3")
		b.may = console.Look | console.Reveal
		b.want("read-only", b.post("/several", form), 403, "read-only")
		b.may |= console.Resolve
		b.full = true
		b.want("without a log", b.post("/several", form), 200, "0 of 4 records were resolved", "The log could not be written")
		b.full = false
		if b.log.Len() > 0 {
			b.Errorf("the log: %s", &b.log)
		}

		b.want("answer", b.post("/several", form), 200, "2 of 4 records were resolved", "The answer was recorded", "it can only be forgotten", "There is no record with this ID")
		for _, key := range []string{"first", "second"} {
			retry, err := b.engine.Begin(b.Context(), operation(key))
			if body := map[string]string{"first": "{\"id\":\n17}", "second": `{"id":18}`}[key]; err != nil || !strings.Contains(string(retry.Payload), body) {
				b.Errorf("%s: the retry gets %q, %v", key, retry.Payload, err)
			}
		}
		if n := strings.Count(b.log.String(), `operator=ada reason="ledger entry 17"`); n != 4 {
			b.Errorf("%d lines, want one before and after each change: %s", n, &b.log)
		}
		b.want("answer again", b.post("/several", form), 422, "To confirm")

		third, thirdFence := b.lapsed("third")
		form = url.Values{"store": {"main"}, "record": {value(kept), value(third)}, "action": {"forget"}, "reason": {"nothing was sent"}, "confirm": {"forget 2"}}
		b.want("form", b.post("/several", url.Values{"store": {"main"}, "record": form["record"]}), 200, "may then run a second time", "<code>forget 2</code>")
		b.want("of an earlier attempt", b.post("/several", url.Values{"store": {"main"}, "record": {fmt.Sprint(third, " lapsed ", thirdFence-1)}}), 200, "has changed since it was shown")
		b.want("without the agreement", b.post("/several", url.Values{
			"store": {"main"}, "record": form["record"][:1], "action": {"forget"}, "reason": {"x"}, "confirm": {"forget 1"},
		}), 200, "0 of 1", "needs to be agreed to")
		form.Set("again", "yes")
		b.want("forget", b.post("/several", form), 200, "2 of 2", "It was forgotten")
		b.want("trail", b.get("/trail"), 200, "ada", "nothing was sent", "forgot it, as it was completed", "recorded an answer, as it was lapsed", kept.Short())
	})
}

// A record that could not be shown is not resolved with the others: the operator did not
// confirm it.
func TestOnlyShownRecordsAreResolved(t *testing.T) {
	inTime(t, func(b *bench) {
		shown, fence := b.lapsed("shown")
		hidden, hiddenFence := b.lapsed("hidden")
		access := func(*http.Request) (string, console.Permission) { return "ada", console.Resolve }
		times := 1 // for which it cannot be read
		unsteady := faulty{b.store, nil, func(_ context.Context, id store.ID) error {
			if id != hidden || times == 0 {
				return nil
			}
			times--
			return store.ErrUnavailable
		}}
		b.serve([]console.Store{{Name: "main", Store: unsteady}}, access, console.Config{})
		form := url.Values{"store": {"main"}, "record": {fmt.Sprint(shown, " lapsed ", fence), fmt.Sprint(hidden, " lapsed ", hiddenFence)}}
		got := b.post("/several", form)
		b.want("form", got, 200, "type <code>forget 1</code>", "The store could not be read")
		if !strings.Contains(got.raw, form["record"][0]) || strings.Contains(got.raw, form["record"][1]) {
			b.Errorf("the form is not about the shown record alone: %s", got.raw)
		}
		times = 1
		form.Set("action", "forget")
		form.Set("reason", "x")
		form.Set("confirm", "forget 1")
		b.want("several", b.post("/several", form), 200, "1 of 2 records were resolved", "The store could not be read")
		if _, err := b.store.Inspect(b.Context(), hidden); err != nil {
			b.Errorf("the record that was not shown: %v", err)
		}
	})
}

// troubled is a store that answers decisions as fails says, after a delay.
type troubled struct {
	*memstore.Store

	delay time.Duration
	fails func(try int) error
	tries int
}

func (st *troubled) Resolve(ctx context.Context, id store.ID, r store.Resolution) error {
	st.tries++
	select {
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", store.ErrUnavailable, ctx.Err())
	case <-time.After(st.delay):
	}
	if err := st.fails(st.tries); err != nil {
		return err
	}
	return st.Store.Resolve(ctx, id, r)
}

// One record may be busy, and the others are resolved anyway. A store that takes long is
// not asked about all of them, so that the form ends.
func TestSeveralRecordsAreTriedAsLongAsTheStoreHasTime(t *testing.T) {
	const records = 40
	always := func(err error) func(int) error { return func(int) error { return err } }
	for name, c := range map[string]struct {
		delay          time.Duration
		fails          func(try int) error
		tries, changed int
		most           time.Duration
	}{
		"one is busy":       {0, func(try int) error { return map[int]error{1: store.ErrBusy}[try] }, records, records - 1, 0},
		"all fail at once":  {0, always(store.ErrNotReplicated), records, 0, 0},
		"it hangs":          {time.Hour, always(nil), 1, 0, 5 * time.Second},
		"each fails late":   {2 * time.Second, always(store.ErrBusy), 3, 0, 6 * time.Second},
		"each is slow":      {100 * time.Millisecond, always(nil), records, records, 4 * time.Second},
		"each is very slow": {2 * time.Second, always(nil), 10, 10, 20 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			inTime(t, func(b *bench) {
				form := url.Values{"store": {"main"}, "action": {"forget"}, "reason": {"x"}, "confirm": {fmt.Sprint("forget ", records)}}
				for i := range records {
					id, fence := b.lapsed(fmt.Sprint("key-", i))
					form.Add("record", fmt.Sprint(id, " lapsed ", fence))
				}
				access := func(*http.Request) (string, console.Permission) { return "ada", console.Resolve }
				st := &troubled{Store: b.store, delay: c.delay, fails: c.fails}
				b.serve([]console.Store{{Name: "main", Store: st}}, access, console.Config{})
				began := time.Now()
				got := b.post("/several", form)
				b.want("several", got, 200, fmt.Sprintf("%d of %d records were resolved", c.changed, records))
				if tried := !strings.Contains(got.text, "It was not tried"); tried != (c.tries == records) || st.tries != c.tries {
					b.Errorf("the store was asked %d times, want %d; the page says that all were tried: %t", st.tries, c.tries, tried)
				}
				if took := time.Since(began); took > c.most {
					b.Errorf("the form took %v, want up to %v", took, c.most)
				}
			})
		})
	}
}
