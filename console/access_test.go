package console_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/reprise-go/reprise/console"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/store"
)

// look grants everyone a look.
func look(*http.Request) (string, console.Permission) { return "", console.Look }

// Every page and form needs its permission: without one no page is served, a look shows
// no part of a response, and neither of the others includes the other.
func TestEachPermissionGrantsItsOwn(t *testing.T) {
	inTime(t, func(b *bench) {
		stuck, fence := b.lapsed("stuck")
		done := b.answered("done", protocol.Response{
			Status: 201, Body: []byte("a private body"), Header: protocol.NewHeader(protocol.Field{Name: "Set-Token", Value: "a private field"}),
		})
		for _, c := range []struct {
			may                                    console.Permission
			look, reveal, resolve                  int
			offersReveal, offersResolve, offersAny bool
		}{
			{0, 403, 403, 403, false, false, false},
			{console.Look, 200, 403, 403, false, false, false},
			{console.Look | console.Reveal, 200, 200, 403, true, false, true},
			{console.Reveal, 200, 200, 403, true, false, true},
			{console.Resolve, 200, 403, 303, false, true, true},
		} {
			b.may = c.may
			b.log.Reset()
			for _, path := range []string{"/", "/records", "/policies", "/find", recordPage(done), recordPage(done) + "?reveal=1"} {
				got := b.get(path)
				b.want(path, got, c.look)
				if strings.Contains(got.text, "a private") {
					b.Errorf("permission %d: %s shows the response: %s", c.may, path, got.text)
				}
			}
			if got := b.get(recordPage(done)); strings.Contains(got.text, `value="reveal"`) != c.offersReveal {
				b.Errorf("permission %d: the button that reveals: %s", c.may, got.text)
			}
			if b.log.Len() > 0 {
				b.Errorf("permission %d: a look is logged: %s", c.may, &b.log)
			}
			shown := b.reveal(done)
			b.want("reveal", shown, c.reveal)
			whole := strings.Contains(shown.text, "a private body") && strings.Contains(shown.text, "a private field")
			if whole != (c.reveal == 200) || !whole && strings.Contains(shown.text, "a private") {
				b.Errorf("permission %d: revealed %s", c.may, shown.text)
			}
			if logged := strings.Contains(b.log.String(), `revealing a response" operator=ada store=main id=`+done.String()); logged != whole {
				b.Errorf("permission %d: the log: %s", c.may, &b.log)
			}
			b.want("resolve", b.post(recordPage(stuck), answerForm(stuck, fence)), c.resolve)
		}
	})
}

// A response that cannot be logged as revealed is not shown, and a resolution that cannot
// be logged is not made.
func TestRevealingAndResolvingNeedTheirLog(t *testing.T) {
	inTime(t, func(b *bench) {
		done := b.answered("done", protocol.Response{Status: 201, Body: []byte("a private body")})
		stuck, fence := b.lapsed("stuck")
		b.full = true
		got := b.reveal(done)
		b.want("reveal", got, 500, "The log could not be written. Nothing was shown.")
		if strings.Contains(got.text, "private") {
			b.Errorf("the page is %s", got.text)
		}
		b.want("resolve", b.post(recordPage(stuck), answerForm(stuck, fence)), 500, "The log could not be written. Nothing was changed.")
		if record, err := b.store.Inspect(b.Context(), stuck); err != nil || record.State != store.StateLapsed {
			b.Errorf("the record is %+v, %v", record, err)
		}
	})
}

// A sender without a name would leave a log that names nobody, so it can only look.
func TestSenderWithoutNameCanOnlyLook(t *testing.T) {
	t.Parallel()
	all := func(*http.Request) (string, console.Permission) {
		return "", console.Look | console.Reveal | console.Resolve
	}
	pages, err := console.Handler([]console.Store{{Name: "main", Store: memstore.New()}}, all, console.Config{})
	must(t, err)
	for path, want := range map[string]int{"/": 200, "/style.css": 200} {
		w := httptest.NewRecorder()
		pages.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, http.NoBody))
		if w.Code != want {
			t.Errorf("%s: %d, want %d", path, w.Code, want)
		}
	}
	for _, action := range []string{"reveal", "forget", "answer"} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, recordPage(store.ID{1}), strings.NewReader(url.Values{"action": {action}}.Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		w := httptest.NewRecorder()
		pages.ServeHTTP(w, r)
		if w.Code != http.StatusForbidden {
			t.Errorf("%s: %d, want 403", action, w.Code)
		}
	}
}

// Behind a proxy that rewrites Host, a browser without Sec-Fetch-Site looks like another
// site's. The page names the field to configure, and with that the form is accepted.
func TestProxyThatRewritesHostNeedsATrustedOrigin(t *testing.T) {
	t.Parallel()
	const origin = "https://ops.example"
	for what, c := range map[string]struct {
		trusted []string
		origin  string
		site    string
		status  int
		text    string
	}{
		"not configured":                     {nil, origin, "", 403, `TrustedOrigins to []string{"` + origin + `"}`},
		"configured":                         {[]string{origin}, origin, "", 422, "Fill in"},
		"another's":                          {[]string{origin}, "https://evil.example", "", 403, "another site"},
		"a page without an origin":           {nil, "null", "", 403, "Nothing was changed.</p>"},
		"a newer browser's, of another site": {nil, "https://evil.example", "cross-site", 403, "Nothing was changed.</p>"},
	} {
		pages, err := console.Handler([]console.Store{{Name: "main", Store: memstore.New()}}, look, console.Config{TrustedOrigins: c.trusted})
		must(t, err)
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://backend:8080/find", strings.NewReader("store=main"))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Origin", c.origin)
		if c.site != "" {
			r.Header.Set("Sec-Fetch-Site", c.site)
		}
		w := httptest.NewRecorder()
		pages.ServeHTTP(w, r)
		if body := strings.ReplaceAll(w.Body.String(), "&#34;", `"`); w.Code != c.status || !strings.Contains(body, c.text) {
			t.Errorf("%s: %d: %s", what, w.Code, body)
		}
	}
}
