package console_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/protocol/stored"
	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/servers"
	repriseredis "github.com/reprise-go/reprise/store/redis"
)

// An operator finds a stuck operation, reads its client's next response, resolves it
// without a mouse, and the client's retry gets exactly that response.
func TestAnOperatorResolvesAStuckOperation(t *testing.T) {
	t.Parallel()
	for name, open := range stores {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			resolveStuck(t, open(t))
		})
	}
}

func resolveStuck(t *testing.T, store store.Store) {
	t.Helper()
	id := stuck(t, store, "order-17")
	s := serve(t, store)
	if status, _, body, err := s.order(t.Context(), "order-17"); err != nil || status != 409 || !strings.Contains(body, "outcome-unknown") {
		t.Fatalf("a retry before: %d %s %v", status, body, err)
	}

	b := openBrowser(t)
	b.visit(s.console(""))
	b.says("Needs a person", id.Short(), "lapsed", "orders")
	b.shot("home")
	b.tabTo(`el.matches("a") && el.textContent === "` + id.Short() + `"`)
	b.enter()
	b.says(id.String(), "lapsed", "409 outcome-unknown, until the record is resolved", "What this process saw")
	b.shot("record")

	b.tabTo(`el.id === "header"`)
	b.keys("Location: /orders/17")
	b.tabTo(`el.id === "body"`)
	b.keys(`{"id":17}`)
	b.tabTo(`el.id === "reason-answer"`)
	b.keys("in the ledger as 17")
	b.tabTo(`el.id === "confirm-answer"`)
	b.keys("not this one")
	b.tabTo(`el.textContent === "Record this answer"`)
	b.enter()
	b.says("type the first 12 digits", "Nothing was changed")

	b.tabTo(`el.id === "confirm-answer"`)
	b.keys(id.Short())
	b.tabTo(`el.textContent === "Record this answer"`)
	b.enter()
	b.says("The answer was recorded", "completed", "resolved by an operator")
	b.shot("resolved")
	b.tabTo(`el.textContent === "Show its fields and body"`)
	b.enter()
	b.says("/orders/17", `{"id":17}`)
	if !strings.Contains(s.log.String(), "revealing a response") {
		t.Errorf("the log does not say who saw the response: %s", s.log.String())
	}

	status, header, body, err := s.order(t.Context(), "order-17")
	if err != nil || status != 201 || body != `{"id":17}` || header.Get("Location") != "/orders/17" ||
		header.Get("Content-Type") != "application/json" || header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("the retry gets %d %v %q, %v", status, header, body, err)
	}
	if runs := s.runs.Load(); runs != 0 {
		t.Errorf("the operation ran %d times more", runs)
	}
	if log := s.log.String(); !strings.Contains(log, `reason="in the ledger as 17"`) || !strings.Contains(log, id.String()) {
		t.Errorf("the log does not say who resolved what, and why: %s", log)
	}
	if problems := b.reported(); !onlyRefusals(problems) {
		t.Errorf("the pages reported %q", problems)
	}
}

// onlyRefusals reports whether all that a page reported are responses with an error
// status, which the browser logs.
func onlyRefusals(problems []string) bool {
	for _, p := range problems {
		if !strings.Contains(p, "the server responded with a status of 4") {
			return false
		}
	}
	return true
}

// A page of another site sends the console's form. The browser sends it, with everything
// that would authenticate the operator, and the console refuses it.
func TestAnotherSitesPageResolvesNothing(t *testing.T) {
	t.Parallel()
	for name, open := range stores {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			st := open(t)
			id := stuck(t, st, "order-17")
			s := serve(t, st)
			inspector, _ := store.As[store.Inspector](st)
			record, err := inspector.Inspect(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			form := `<form method="post" action="` + s.console("records/main/"+id.String()) + `">
				<input name="action" value="forget"><input name="state" value="lapsed"><input name="fence" value="` + uintText(record.Fence) + `">
				<input name="confirm" value="` + id.Short() + `"><input name="reason" value="evil"></form>
				<script>document.forms[0].submit()</script>`
			evil := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/html")
				_, _ = io.WriteString(w, form)
			}))
			defer evil.Close()

			b := openBrowser(t)
			for _, origin := range []string{evil.URL, strings.Replace(evil.URL, "127.0.0.1", "localhost", 1)} {
				b.run(chromedp.Navigate(origin), chromedp.WaitVisible(`.notice.failed`))
				b.says("another site", "Nothing was changed")
				if after, err := inspector.Inspect(t.Context(), id); err != nil || after.State != store.StateLapsed || after.Fence != record.Fence {
					t.Fatalf("from %s: the record is %+v, %v", origin, after, err)
				}
			}
			// The same form from the console's own page changes the record, so it was not the form
			// that was wrong.
			b.visit(s.console("records/main/" + id.String()))
			b.run(
				chromedp.SetValue("#reason-forget", "it never left the queue"),
				chromedp.SetValue("#confirm-forget", id.Short()),
				chromedp.Click("button.danger"),
				chromedp.WaitVisible(".filter"),
			)
			if _, err := inspector.Inspect(t.Context(), id); err == nil {
				t.Error("the console's own form does not forget the record")
			}
		})
	}
}

// A 503 is kept although nothing was ordered. An operator forgets it, and the client's
// retry runs, once.
func TestAnOperatorForgetsAKeptFailure(t *testing.T) {
	t.Parallel()
	for name, open := range stores {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, open(t))
			s.free()
			s.status.Store(http.StatusServiceUnavailable)
			for range 2 {
				s.wants("order-17", 503)
			}
			id := store.DeriveID("shop", "", "order-17")
			b := openBrowser(t)
			b.visit(s.console("records/main/" + id.String()))
			b.says("completed", "a failure is kept: 503", "Forget the record only if you know that it took no effect")
			b.shot("failure")
			b.forget(id, "nothing was sent")
			s.status.Store(http.StatusOK)
			for range 2 {
				s.wants("order-17", 200)
			}
			if runs := s.runs.Load(); runs != 2 {
				t.Errorf("the operation ran %d times, want 2", runs)
			}
			b.visit(s.console("records/main/" + id.String()))
			b.says("resolved by ada, attempt 1: it was completed, and is forgotten: nothing was sent")
			if log := s.log.String(); strings.Count(log, "state=completed") != 2 || strings.Count(log, `reason="nothing was sent"`) != 2 {
				t.Errorf("the log does not say what was forgotten, and why: %s", log)
			}
		})
	}
}

// A record that this release cannot read answers 500 until an operator forgets it.
func TestAnOperatorForgetsWhatIsUnreadable(t *testing.T) {
	t.Parallel()
	client, prefix := labtest.RedisClient(t, servers.Redis.Shared(t).Addr()), labtest.RedisPrefix()
	s := serve(t, labtest.RedisStore(t, client, repriseredis.Config{Prefix: prefix}))
	s.free()
	s.wants("order-17", 200)
	id := store.DeriveID("shop", "", "order-17")
	if err := client.Set(t.Context(), labtest.RedisKey(prefix, id), "what a later release wrote", time.Hour).Err(); err != nil {
		t.Fatal(err)
	}
	s.wants("order-17", 500)
	b := openBrowser(t)
	b.visit(s.console("records/main/" + id.String()))
	b.says("unreadable", "500 record-corrupt", "its attempt may be running")
	b.forget(id, "no newer release is in use")
	for range 2 {
		s.wants("order-17", 200)
	}
	if runs := s.runs.Load(); runs != 2 {
		t.Errorf("the operation ran %d times, want 2", runs)
	}
}

// reveal shows the response on a record's page.
func (b *browser) reveal() {
	b.Helper()
	b.run(chromedp.Click("button[value=reveal]"), chromedp.WaitVisible("pre.body"))
}

// wants sends an order and compares the status of its answer.
func (s *service) wants(key string, status int) {
	s.Helper()
	if got, _, body, err := s.order(s.Context(), key); err != nil || got != status {
		s.Fatalf("%s gets %d %s, %v; want %d", key, got, body, err, status)
	}
}

// forget forgets the record on the page, which first asks to agree that it may run again.
func (b *browser) forget(id store.ID, reason string) {
	b.Helper()
	b.run(
		chromedp.SetValue("#reason-forget", reason),
		chromedp.SetValue("#confirm-forget", id.Short()),
		chromedp.Click("#again"),
		chromedp.Click("button.danger"),
		chromedp.WaitVisible(".filter"),
	)
	b.says("The record was forgotten. The next request with its key runs.")
}

func TestAReadOnlyConsoleIsReadOnly(t *testing.T) {
	t.Parallel()
	store := stores["redis"](t)
	id := stuck(t, store, "order-17")
	s := serve(t, store)
	s.writes.Store(false)
	b := openBrowser(t)
	address := s.console("records/main/" + id.String())
	b.visit(address)
	b.says(id.Short(), "Read-only")
	var forms int
	b.run(chromedp.Evaluate(`document.querySelectorAll("form[method=post]").length`, &forms)) // a lapsed record has no response to reveal
	if forms != 0 {
		t.Errorf("%d forms that write", forms)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address, strings.NewReader("action=forget&state=lapsed&confirm="+id.Short()+"&reason=x&fence=1"))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	got, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer got.Body.Close()
	if got.StatusCode != http.StatusForbidden {
		t.Errorf("a form that was sent anyway: %d", got.StatusCode)
	}
}

func TestARecordsBodyCannotScriptThePage(t *testing.T) {
	t.Parallel()
	st := stores["postgres"](t)
	s := serve(t, st)
	s.answer = `</pre></main><script>window.hacked = true; alert(1)</script><img src=x onerror="window.hacked = true"><svg onload="window.hacked = true">`
	s.free()
	if status, _, _, err := s.order(t.Context(), "hostile"); err != nil || status != 200 {
		t.Fatalf("%d, %v", status, err)
	}
	b := openBrowser(t)
	b.visit(s.console("records/main/" + store.DeriveID("shop", "", "hostile").String()))
	b.reveal()
	b.says("<script>window.hacked = true", `<img src=x onerror=`)
	var hacked bool
	b.run(chromedp.Evaluate(`window.hacked === true || document.querySelector("main script, main img") !== null`, &hacked))
	if problems := b.reported(); hacked || len(problems) > 0 {
		t.Errorf("hacked: %v; the page reported %q", hacked, problems)
	}
}

// 100,000 records: a page lists a bounded part of them, and one stuck operation among
// them is found.
func TestAHundredThousandRecordsAreNotLoaded(t *testing.T) {
	t.Parallel()
	for name, open := range stores {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			st := open(t)
			fill(t, st, 100_000)
			id := stuck(t, st, "the one")
			inspector, _ := store.As[store.Inspector](st)
			slow := slowLister{Store: st, Inspector: inspector}
			s := serve(t, &slow)
			for _, path := range []string{"", "records", "records?state=lapsed"} {
				slow.calls.Store(0)
				get(t, s.console(path))
				if calls := slow.calls.Load(); calls == 0 || calls > 8 { // a page lists for at most 0.6 s
					t.Errorf("%q lists %d times", path, calls)
				}
				if most := slow.most.Load(); most > 20_000 {
					t.Errorf("%q looks at %d records in one call", path, most)
				}
			}
			b := openBrowser(t)
			b.visit(s.console("records?state=lapsed"))
			for pages := 0; !strings.Contains(b.text(), id.Short()); pages++ {
				if pages > 100 || !strings.Contains(b.text(), "Look further") {
					t.Fatalf("the record is not found after %d pages: %s", pages, b.text())
				}
				b.run(chromedp.Click("a[rel=next]"), chromedp.WaitReady("main"))
			}
		})
	}
}

// slowLister is a store that takes at least 100 ms to list a part of its records.
type slowLister struct {
	store.Store
	store.Inspector

	calls, most atomic.Int64 // listings, and the most records that one looked at
}

// Unwrap returns the store below.
func (s *slowLister) Unwrap() store.Store { return s.Store }

// List implements [store.Inspector].
func (s *slowLister) List(ctx context.Context, q store.Query) (store.Page, error) {
	s.calls.Add(1)
	time.Sleep(100 * time.Millisecond) //nolint:forbidigo // it is the store that is slow
	page, err := s.Inspector.List(ctx, q)
	s.most.Store(max(s.most.Load(), int64(page.Scanned)))
	return page, err
}

// fill completes operations of other clients.
func fill(t *testing.T, st store.Store, count int) {
	t.Helper()
	payload, err := stored.Encode(protocol.Response{Status: 200})
	if err != nil {
		t.Fatal(err)
	}
	numbers := make(chan int)
	var workers sync.WaitGroup
	for range 64 {
		workers.Go(func() {
			for n := range numbers {
				if err := complete(t.Context(), st, store.DeriveID("others", "", uintText(uint64(n))), payload); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for n := range count {
		numbers <- n
	}
	close(numbers)
	workers.Wait()
}

func complete(ctx context.Context, st store.Store, id store.ID, payload []byte) error {
	owner := store.NewOwner()
	got, err := st.Claim(ctx, store.ClaimRequest{ID: id, Owner: owner, Policy: store.Policy{Label: "others", Retention: time.Hour}, Lease: time.Minute})
	if err != nil {
		return err
	}
	return st.Complete(ctx, store.CompleteRequest{
		ID: id, Owner: owner, Policy: store.Policy{Label: "others", Retention: time.Hour}, Attempt: got.Attempt, Fence: got.Fence, Payload: payload,
	})
}

func get(t *testing.T, address string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	got, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer got.Body.Close()
	if body, err := io.ReadAll(got.Body); err != nil || got.StatusCode != http.StatusOK {
		t.Fatalf("%s: %d, %v: %s", address, got.StatusCode, err, body)
	}
}

func uintText(n uint64) string { return strconv.FormatUint(n, 10) }
