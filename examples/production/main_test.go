package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/servers"
)

// TestKeysBelongToTenants sends one key with the credentials of several tenants, and
// looks at their metrics and spans.
func TestKeysBelongToTenants(t *testing.T) {
	t.Parallel()
	var spans bytes.Buffer
	telemetry, err := newTelemetry(&spans)
	servers.Must(t, err)
	secret := []byte("0123456789abcdef0123456789abcdef")
	handler, guard, err := newAPI(memstore.New(), authenticator{secret, digests(map[string]string{"key of acme": "acme"})}, telemetry)
	servers.Must(t, err)
	t.Cleanup(func() { _ = guard.Close(context.WithoutCancel(t.Context())) })
	token := func(tenant, audience string, life time.Duration, with []byte) string {
		signed, err := jwt.NewWithClaims(jwt.SigningMethodHS256, jwt.RegisteredClaims{
			Subject: tenant, Audience: jwt.ClaimStrings{audience}, ExpiresAt: jwt.NewNumericDate(time.Now().Add(life)),
		}).SignedString(with)
		servers.Must(t, err)
		return "Bearer " + signed
	}
	unsigned, err := jwt.NewWithClaims(jwt.SigningMethodNone, jwt.RegisteredClaims{
		Subject: "acme", Audience: jwt.ClaimStrings{"transfers"}, ExpiresAt: jwt.NewNumericDate(time.Now().Add(time.Hour)),
	}).SignedString(jwt.UnsafeAllowNoneSignatureType)
	servers.Must(t, err)
	for _, row := range []struct {
		name, field, value string
		status             int
		body               string
		replayed           bool
	}{
		{"a token", "Authorization", token("acme", "transfers", time.Hour, secret), 201, `{"cents":100,"tenant":"acme"}` + "\n", false},
		{"a newer token", "Authorization", token("acme", "transfers", 2*time.Hour, secret), 201, `{"cents":100,"tenant":"acme"}` + "\n", true},
		{"the API key of the same tenant", "X-Api-Key", "key of acme", 201, `{"cents":100,"tenant":"acme"}` + "\n", true},
		{"another tenant", "Authorization", token("globex", "transfers", time.Hour, secret), 201, `{"cents":100,"tenant":"globex"}` + "\n", false},
		{"an expired token", "Authorization", token("acme", "transfers", -time.Hour, secret), 401, "not authenticated\n", false},
		{"a token for another service", "Authorization", token("acme", "reports", time.Hour, secret), 401, "not authenticated\n", false},
		{"a token of another signer", "Authorization", token("acme", "transfers", time.Hour, []byte("another secret of thirty-two byte")), 401, "not authenticated\n", false},
		{"a token that is not signed", "Authorization", "Bearer " + unsigned, 401, "not authenticated\n", false},
		{"an unknown API key", "X-Api-Key", "guessed", 401, "not authenticated\n", false},
		{"no credentials", "X-Nothing", "", 401, "not authenticated\n", false},
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/transfers", strings.NewReader(`{"cents":100}`))
		r.Header.Set("Idempotency-Key", "7c1f")
		r.Header.Set(row.field, row.value)
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		replayed := w.Header().Get("Idempotent-Replayed") == "true"
		if w.Code != row.status || w.Body.String() != row.body || replayed != row.replayed {
			t.Errorf("%s: answered %d %q, replayed %t; want %d %q, %t", row.name, w.Code, w.Body, replayed, row.status, row.body, row.replayed)
		}
	}

	w := httptest.NewRecorder()
	handler.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", http.NoBody))
	for _, want := range []string{`reprise_outcome="claimed"} 2`, `reprise_outcome="replayed"} 2`, `reprise_end="recorded",reprise_label="transfers"} 2`} {
		if !strings.Contains(w.Body.String(), want) {
			t.Errorf("the metrics lack %s:\n%s", want, w.Body)
		}
	}
	type spanContext struct{ TraceID, SpanID string }
	type span struct {
		SpanContext spanContext
		Links       []struct{ SpanContext spanContext }
	}
	var first, replay span
	decoder := json.NewDecoder(&spans)
	servers.Must(t, errors.Join(decoder.Decode(&first), decoder.Decode(&replay)))
	if len(replay.Links) != 1 || replay.Links[0].SpanContext != first.SpanContext {
		t.Errorf("the span of the replay is %+v, not linked to %+v", replay, first)
	}
}
