package main

import (
	"context"
	"database/sql"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
)

func TestPlacesAreTakenOnce(t *testing.T) {
	t.Parallel()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(t.TempDir(), "workshop.db")+"?_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)")
	if err != nil {
		t.Fatal(err)
	}
	records, err := openStore(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	e, guard, err := newAPI(records, 2)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(e)
	t.Cleanup(func() {
		server.Close()
		if err := errors.Join(guard.Close(context.WithoutCancel(t.Context())), db.Close()); err != nil {
			t.Error(err)
		}
	})
	const full = `{"error":"the workshop is full"}`
	for i, step := range []struct {
		user, key string
		status    int
		body      string
		replayed  bool
	}{
		{"ada", "1", 201, `{"for":"ada","place":1}`, false},
		{"ada", "1", 201, `{"for":"ada","place":1}`, true},
		{"bob", "1", 201, `{"for":"bob","place":2}`, false},
		{"ada", "2", 409, full, false},
		{"ada", "2", 409, full, true},
		{"ada", "", 400, "", false},
		{"eve", "1", 401, "", false},
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+"/places", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		r.SetBasicAuth(step.user, "pw-of-"+step.user)
		if step.key != "" {
			r.Header.Set("Idempotency-Key", step.key)
		}
		res, err := server.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		replayed := res.Header.Get("Idempotent-Replayed") == "true"
		if res.StatusCode != step.status || replayed != step.replayed || step.body != "" && strings.TrimSpace(string(body)) != step.body {
			t.Errorf("step %d: %d %q, replayed %v, want %+v", i+1, res.StatusCode, body, replayed, step)
		}
	}
}
