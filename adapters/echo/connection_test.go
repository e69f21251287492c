package repriseecho

import (
	"context"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/labstack/echo/v4"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/protocol"
)

// R17: Echo's own response takes 103 as the final status, so handlers write it behind
// that; it goes out at once.
func TestR17InformationalAnswers(t *testing.T) {
	t.Parallel()
	b := setup(t, protocol.Config{})
	b.POST("/hints", func(c echo.Context) error {
		c.Response().Writer.WriteHeader(http.StatusEarlyHints)
		return created(c)
	}, b.guarded)
	hinted := 0
	trace := &httptrace.ClientTrace{Got1xxResponse: func(code int, _ textproto.MIMEHeader) error {
		if code == http.StatusEarlyHints {
			hinted++
		}
		return nil
	}}
	r := b.request("POST", "/hints", "body", "Idempotency-Key", "k")
	a, err := b.try(r.WithContext(httptrace.WithClientTrace(r.Context(), trace)))
	if err != nil || a.status != http.StatusCreated || a.body != createdBody || hinted != 1 {
		t.Errorf("%d informational answers, then %+v, %v", hinted, a, err)
	}
	if again := b.send("POST", "/hints", "Idempotency-Key", "k"); !again.replayed() || again.status != http.StatusCreated {
		t.Errorf("replayed %+v", again)
	}
}

func TestContextOfAHandler(t *testing.T) {
	t.Parallel()
	b := setup(t, protocol.Config{})
	type name struct{}
	left := make(chan *http.Request, 1)
	b.Use(func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			outer := c.Request().WithContext(context.WithValue(c.Request().Context(), name{}, "outer"))
			c.SetRequest(outer)
			err := next(c)
			if c.Request() != outer {
				t.Error("a layer outside does not find its request again")
			}
			return err
		}
	}, b.guarded)
	b.POST("/orders/:id", func(c echo.Context) error {
		ctx := c.Request().Context()
		if ctx.Value(name{}) != "outer" || ctx.Err() != nil {
			t.Errorf("value %v, error %v", ctx.Value(name{}), ctx.Err())
		}
		if view, ok := reprise.AttemptFrom(ctx); !ok || view.Number() != 1 {
			t.Error("the handler does not know its attempt")
		}
		if body, err := io.ReadAll(c.Request().Body); err != nil || string(body) != "body" {
			t.Errorf("body %q, %v", body, err)
		}
		if err := http.NewResponseController(c.Response()).SetWriteDeadline(time.Now().Add(patience)); err != nil {
			t.Errorf("the deadlines of the connection: %v", err)
		}
		left <- c.Request()
		return created(c)
	})
	b.twice("POST", "/orders/7")
	rest := <-left
	select {
	case <-rest.Context().Done():
	case <-time.After(patience):
		t.Error("the context of a handler outlives its answer")
	}
	if _, err := rest.Body.Read(make([]byte, 1)); err == nil {
		t.Error("the body can be read after the answer")
	}
}

// Echo uses its contexts again: nothing of one request may be seen by the next on the
// same.
func TestPooledContextsAreClean(t *testing.T) {
	t.Parallel()
	b := setup(t, protocol.Config{})
	b.POST("/orders", func(c echo.Context) error {
		if _, own := c.Response().Writer.(*writer); own != (c.Request().Header.Get("Idempotency-Key") != "") {
			t.Errorf("recorded: %v", own)
		}
		if c.Response().Committed || c.Response().Size != 0 || len(c.Response().Header()) != 0 {
			t.Errorf("the response is not new: %+v", c.Response())
		}
		return created(c)
	}, b.guarded)
	b.POST("/panics", func(echo.Context) error { panic("cut") }, recovery, b.guarded)
	for range 50 {
		b.send("POST", "/orders")
		b.send("POST", "/panics", "Idempotency-Key", "p")
		b.twice("POST", "/orders")
	}
}

// The server removes the files of a form that was parsed from its own request, so it has
// to learn of those of the handler's.
func TestFilesOfAFormAreRemoved(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	b := setup(t, protocol.Config{Limits: protocol.Limits{RequestBody: 40 << 20}})
	b.POST("/upload", func(c echo.Context) error {
		form, err := c.MultipartForm()
		if err != nil || len(form.File["f"]) != 1 {
			t.Errorf("form %v, %v", form, err)
		}
		if entries, _ := os.ReadDir(dir); len(entries) != 1 {
			t.Errorf("%d files while the handler runs, want 1: the test shows nothing", len(entries))
		}
		return err
	}, b.guarded)
	var body strings.Builder
	form := multipart.NewWriter(&body)
	part, err := form.CreateFormFile("f", "f.bin")
	if err != nil {
		t.Fatal(err)
	}
	_, _ = part.Write(pattern(33 << 20)) // Echo keeps 32 MiB in memory
	_ = form.Close()
	a, err := b.try(b.request("POST", "/upload", body.String(), "Content-Type", form.FormDataContentType(), "Idempotency-Key", "k"))
	if err != nil || a.status != http.StatusOK {
		t.Fatalf("%+v, %v", a, err)
	}
	eventually(t, func() bool {
		entries, err := os.ReadDir(dir)
		return err == nil && len(entries) == 0
	})
}
