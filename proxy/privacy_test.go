package proxy_test

import (
	"bytes"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/proxy"
)

// A path may have an address or a token in it.
func TestRecordHasNoPathUnlessThePolicySaysSo(t *testing.T) {
	t.Parallel()
	const path, route = "/password-reset/alice@example.com", "[[route]]\nmatch = ['/password-reset/{who}']\n"
	for config, want := range map[string]string{
		"": "POST", route: "POST /password-reset/{who}", strings.ReplaceAll(route, "'/", "'POST /"): "POST /password-reset/{who}",
		route + "record_path = true\n": "POST " + path,
	} {
		st := memstore.New()
		b := setupOver(t, st, reprise.Config{}, plain+config)
		b.post(path, "k1")
		page, err := st.List(t.Context(), store.Query{Limit: 1})
		if err != nil || len(page.Records) != 1 || page.Records[0].Description != want {
			t.Errorf("%q: %+v, %v, want the description %s", config, page.Records, err, want)
		}
	}
}

// The record of a proxy with a secret says nothing without it, and another secret under
// the same ID opens nothing.
func TestSecretOfTheFileSealsResponses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	secret := func(name, text string) string {
		file := filepath.Join(dir, name)
		must(t, os.WriteFile(file, []byte(text), 0o600))
		return "{ id = '2026-11', file = '" + file + "' }"
	}
	first, other := secret("first", strings.Repeat("a", 32)), secret("other", strings.Repeat("b", 32))
	st := memstore.New()
	b := setupOver(t, st, reprise.Config{}, plain+"[seal]\nsecret = "+first+"\n")
	b.handle(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("a name")) })
	b.post("/orders", "k1")
	page, err := st.List(t.Context(), store.Query{Limit: 1})
	if err != nil || len(page.Records) != 1 {
		t.Fatal(page, err)
	}
	if r, err := st.Inspect(t.Context(), page.Records[0].ID); err != nil || bytes.Contains(r.Payload, []byte("a name")) {
		t.Errorf("the record has the response: %q, %v", r.Payload, err)
	}
	for config, want := range map[string]int{
		"":                          http.StatusInternalServerError,
		"[seal]\nsecret = " + other: http.StatusInternalServerError,
		"[seal]\nother_secrets = [" + first + "]":                                           http.StatusOK,
		"[seal]\nsecret = " + first + "\nstrict = true\nclear_head = true\nmax_age = '25h'": http.StatusOK,
	} {
		must(t, b.handler.Reload(b.config(plain+config)))
		if got := b.post("/orders", "k1"); got.status != want || want == http.StatusOK && !got.replayed() {
			t.Errorf("%s: got %d %s, want %d", config, got.status, got.body, want)
		}
	}
	for config, want := range map[string]string{
		"secret = { id = '2026-11' }":                               "seal.secret",
		"secret = { id = '2026-11', file = '" + dir + "/none' }":    "seal.secret",
		"secret = " + secret("short", "short"):                      "32",
		"other_secrets = [{ id = 'a', file = '" + dir + "/none' }]": "seal.other_secrets",
		"strict = true": "Seal.Strict",
	} {
		if _, err := proxy.New(st, b.config(plain+"[seal]\n"+config), proxy.Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", config, err, want)
		}
	}
}
