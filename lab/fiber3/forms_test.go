package labfiber3_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gofiber/fiber/v3"
	"github.com/gofiber/fiber/v3/middleware/csrf"
	"github.com/gofiber/fiber/v3/middleware/encryptcookie"
	"github.com/gofiber/fiber/v3/middleware/session"

	reprisefiber3 "github.com/reprise-go/reprise/adapters/fiber3"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/lab/frameworks/cost"
)

// A form token belongs to a session in an encrypted cookie. Outside of the middleware, a
// request without its token runs no handler and leaves the key free; and the scope
// function sees the session.
func TestFormTokensOutside(t *testing.T) {
	t.Parallel()
	var runs atomic.Int64
	app := fiber.New()
	app.Use(encryptcookie.New(encryptcookie.Config{Key: encryptcookie.GenerateKey(32)}))
	sessions, store := session.NewWithStore()
	app.Use(sessions, csrf.New(csrf.Config{Session: store}))
	app.Get("/orders", func(c fiber.Ctx) error { return c.SendString(csrf.TokenFromContext(c)) })
	app.Post("/orders", reprisefiber3.Middleware(cost.Guard(t, memstore.New()), func(c fiber.Ctx) (string, error) {
		return session.FromContext(c).ID(), nil
	}), func(c fiber.Ctx) error {
		return c.Status(fiber.StatusCreated).SendString(fmt.Sprint("order ", runs.Add(1)))
	})
	addr := serve(t, app)
	shopper := newShopper(t, addr)
	token := shopper.send(http.MethodGet, "").body
	if got := shopper.send(http.MethodPost, ""); got.status != fiber.StatusForbidden || runs.Load() != 0 {
		t.Errorf("without a token: %+v, and %d runs", got, runs.Load())
	}
	for _, replayed := range []bool{false, true} {
		if got := shopper.send(http.MethodPost, token); got.status != fiber.StatusCreated || got.body != "order 1" || got.replayed != replayed {
			t.Errorf("with its token: %+v, want order 1, replayed %t", got, replayed)
		}
	}
	other := newShopper(t, addr)
	if got := other.send(http.MethodPost, other.send(http.MethodGet, "").body); got.body != "order 2" || got.replayed {
		t.Errorf("the same key in another session: %+v", got)
	}
}

// shopper is a client that keeps its cookies, and always sends the same key.
type shopper struct {
	t      *testing.T
	client http.Client
	url    string
}

func newShopper(t *testing.T, addr string) *shopper {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &shopper{t, http.Client{Jar: jar, Timeout: 10 * time.Second}, "http://" + addr + "/orders"}
}

type answer struct {
	status   int
	body     string
	replayed bool
}

func (s *shopper) send(method, token string) answer {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.url, strings.NewReader(""))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Idempotency-Key", "k")
	r.Header.Set(csrf.HeaderName, token)
	r.Header.Set("Origin", strings.TrimSuffix(s.url, "/orders"))
	res, err := s.client.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return answer{res.StatusCode, string(body), res.Header.Get("Idempotent-Replayed") == "true"}
}
