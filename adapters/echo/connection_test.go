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

// A websocket begins with GET, which is not keyed: its connection is Echo's.
func TestUpgradesPassUntouched(t *testing.T) {
	t.Parallel()
	b := setup(t, protocol.Config{Required: true})
	b.GET("/socket", func(c echo.Context) error {
		conn, rw, err := c.Response().Hijack()
		if err != nil {
			return err
		}
		defer conn.Close()
		line, err := rw.ReadString('\n')
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\n\r\n"+line)
		return err
	}, b.guarded)
	got := b.talk("GET /socket HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nIdempotency-Key: k\r\n\r\nping\n")
	if got != "HTTP/1.1 101 Switching Protocols\r\n\r\nping\n" {
		t.Errorf("got %q", got)
	}
}

func TestR34HijackedConnectionIsNotKept(t *testing.T) {
	t.Parallel()
	for preset, runs := range map[reprise.Preset]int64{reprise.Recoverable: 2, reprise.AtMostOnce: 1} {
		b := setup(t, protocol.Config{Preset: preset})
		b.POST("/taken", b.counted(func(c echo.Context) error {
			conn, _, err := c.Response().Hijack()
			if err != nil {
				return err
			}
			defer conn.Close()
			_, err = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\nraw")
			return err
		}), b.guarded)
		const request = "POST /taken HTTP/1.1\r\nHost: h\r\nIdempotency-Key: k\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
		if got := b.talk(request); !strings.HasSuffix(got, "\r\n\r\nraw") {
			t.Errorf("%v: got %q", preset, got)
		}
		var again string
		eventually(t, func() bool { // the handler ends after its connection
			again = b.talk(request)
			return !strings.Contains(again, "in-progress")
		})
		if want := map[int64]string{2: "raw", 1: "result-unavailable"}[runs]; !strings.Contains(again, want) {
			t.Errorf("%v: the retry got %q", preset, again)
		}
		b.ran(runs)
	}
}

// R17: Echo's own response takes 103 as the final status, so handlers write it behind that; it goes out at once.
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

// R23: the context of a handler does not end with its client.
func TestR23RunOutlivesItsClient(t *testing.T) {
	t.Parallel()
	b := setup(t, protocol.Config{})
	started, gone := make(chan struct{}), make(chan struct{})
	b.POST("/orders", b.counted(func(c echo.Context) error {
		close(started)
		<-gone
		if err := c.Request().Context().Err(); err != nil {
			t.Errorf("the context ended with the client: %v", err)
		}
		return created(c)
	}), func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			if b.runs.Load() == 0 {
				context.AfterFunc(c.Request().Context(), func() { close(gone) })
			}
			return next(c)
		}
	}, b.guarded)
	ctx, leave := context.WithCancel(t.Context())
	go func() {
		<-started
		leave()
	}()
	if a, err := b.try(b.request("POST", "/orders", "body", "Idempotency-Key", "k").WithContext(ctx)); err == nil {
		t.Fatalf("the client that left got %+v", a)
	}
	eventually(t, func() bool {
		a := b.send("POST", "/orders", "Idempotency-Key", "k")
		if !a.replayed() && a.status != http.StatusConflict {
			t.Fatalf("the retry got %+v", a)
		}
		return a.replayed() && a.body == createdBody
	})
	b.ran(1)
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

// Echo uses its contexts again: nothing of one request may be seen by the next on the same.
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

// The server removes the files of a form that was parsed from its own request, so it has to learn of those of the handler's.
func TestFilesOfAFormAreRemoved(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	b := setup(t, protocol.Config{MaxRequestBody: 40 << 20})
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
