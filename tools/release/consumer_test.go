package main

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
)

// A refused framework leaves out the modules that need it; a module of the project that
// is not served is an error.
func TestRefusedModulesAreToldFromMissingOnes(t *testing.T) {
	t.Parallel()
	refusing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "blocked by policy", http.StatusForbidden)
	}))
	t.Cleanup(refusing.Close)
	u, err := newConsumer(t.Context(), filepath.Join(t.TempDir(), "home"), &proxy{dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	u.env = append(u.env, "GOPROXY="+refusing.URL)
	dir, err := u.newModule(t.Context(), "empty")
	if err != nil {
		t.Fatal(err)
	}

	reason := unavailable("")
	_, err = u.run(t.Context(), dir, "get", "example.com/framework@v1.2.3")
	if !errors.As(err, &reason) || !strings.HasPrefix(string(reason), "example.com/framework@v1.2.3: 403 Forbidden") {
		t.Errorf("error %v, want the refused module with the answer of its proxy", err)
	}
	if _, err := u.run(t.Context(), dir, "get", prefix+"core@v0.1.0"); err == nil || errors.As(err, &reason) {
		t.Errorf("error %v, want that of a module of the project", err)
	}

	r := &release{}
	for cause, proof := range map[error]string{reason: "fiber: not tried: the module proxy refuses " + string(reason), nil: ""} {
		r.leftOut = nil
		err := r.inParallel(t.Context(), 1, func(context.Context, int) (string, error) { return "fiber: not tried", cause })
		if err != nil || strings.Join(r.leftOut, "\n") != proof {
			t.Errorf("error %v, left out %q; want %q", err, r.leftOut, proof)
		}
	}
	if err := r.inParallel(t.Context(), 1, func(context.Context, int) (string, error) { return "", errors.ErrUnsupported }); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("error %v, want it as it is", err)
	}
}
