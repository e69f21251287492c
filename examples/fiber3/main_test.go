package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/gofiber/fiber/v3"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
)

func TestCardsAreIssuedOnce(t *testing.T) {
	t.Parallel()
	issued := 0
	app, guard, err := newApp(memstore.New(), func(ctx context.Context, _ int) string {
		if _, running := reprise.AttemptFrom(ctx); !running {
			t.Error("the context is not that of a run")
		}
		issued++
		return fmt.Sprint("code-", issued)
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := guard.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	for i, step := range []struct {
		shop, key, body string
		status          int
		response        string
		replayed        bool
	}{
		{"acme", "1", `{"amount":2500}`, 201, `{"amount":2500,"code":"code-1"}`, false},
		{"acme", "1", `{"amount":2500}`, 201, `{"amount":2500,"code":"code-1"}`, true},
		{"globex", "1", `{"amount":2500}`, 201, `{"amount":2500,"code":"code-2"}`, false},
		{"acme", "1", `{"amount":9900}`, 422, "", false},
		{"acme", "2", `{}`, 422, "a card needs an amount", false},
		{"acme", "2", `{}`, 422, "a card needs an amount", true},
		{"acme", "", `{"amount":2500}`, 400, "", false},
		{"eve", "1", `{"amount":2500}`, 401, "", false},
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "/cards", strings.NewReader(step.body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Authorization", "Bearer "+step.shop+"-token")
		if step.key != "" {
			r.Header.Set("Idempotency-Key", step.key)
		}
		res, err := app.Test(r, fiber.TestConfig{})
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		replayed := res.Header.Get("Idempotent-Replayed") == "true"
		if res.StatusCode != step.status || replayed != step.replayed || step.response != "" && string(body) != step.response {
			t.Errorf("step %d: %d %q, replayed %v, want %+v", i+1, res.StatusCode, body, replayed, step)
		}
	}
}
