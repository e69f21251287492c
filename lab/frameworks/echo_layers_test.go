//go:build !without_echo

package frameworks

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"

	repriseecho "github.com/reprise-go/reprise/adapters/echo"
)

// TestLayersOfEcho runs the middlewares that come with Echo on both sides of the adapter. It is here because they need a module that a
// user of the adapter may do without.
func TestLayersOfEcho(t *testing.T) {
	t.Parallel()
	guarded := repriseecho.Middleware(costGuard(t), repriseecho.Unscoped)
	var log logged
	layers := map[string]echo.MiddlewareFunc{
		"gzip":      middleware.GzipWithConfig(middleware.GzipConfig{MinLength: 10}),
		"recover":   middleware.RecoverWithConfig(middleware.RecoverConfig{DisablePrintStack: true}),
		"requestid": middleware.RequestID(),
		"secure":    middleware.Secure(),
		"bodydump":  middleware.BodyDump(func(_ echo.Context, _, body []byte) { log.add("dump " + string(body)) }),
		"logger": middleware.RequestLoggerWithConfig(middleware.RequestLoggerConfig{
			LogStatus: true, LogResponseSize: true,
			LogValuesFunc: func(_ echo.Context, v middleware.RequestLoggerValues) error {
				log.add(http.StatusText(v.Status))
				return nil
			},
		}),
	}
	e := echo.New()
	e.Logger.SetOutput(io.Discard)
	body := strings.Repeat("ticket ", 100)
	for name, layer := range layers {
		for kind, handler := range map[string]echo.HandlerFunc{
			"ok":      func(c echo.Context) error { return c.String(http.StatusCreated, body) },
			"refuses": func(echo.Context) error { return echo.NewHTTPError(http.StatusConflict, "taken") },
			"empty":   func(c echo.Context) error { return c.NoContent(http.StatusNoContent) },
		} {
			e.POST("/outside/"+name+"/"+kind, handler, layer, guarded)
			e.POST("/inside/"+name+"/"+kind, handler, guarded, layer)
		}
		e.POST("/outside/"+name+"/panics", func(echo.Context) error { panic("lost") }, middleware.Recover(), layer, guarded)
	}
	addr := costServer(t, e)
	client := &http.Client{Transport: &http.Transport{DisableCompression: true}}
	t.Cleanup(client.CloseIdleConnections)
	send := func(path string) (status int, replayed bool, text string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+addr+path, strings.NewReader("body"))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Idempotency-Key", "key"+strings.ReplaceAll(path, "/", "-"))
		r.Header.Set("Accept-Encoding", "gzip")
		res, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		content, err := io.ReadAll(res.Body)
		if err == nil && res.Header.Get("Content-Encoding") == "gzip" {
			content, err = unzipped(content)
		}
		if err != nil {
			t.Errorf("%s: %v", path, err)
		}
		if ids := res.Header.Values(echo.HeaderXRequestID); len(ids) > 1 {
			t.Errorf("%s: X-Request-Id %q", path, ids)
		}
		return res.StatusCode, res.Header.Get("Idempotent-Replayed") == "true", string(content)
	}
	for name := range layers {
		for kind, want := range map[string]struct {
			status int
			body   string
		}{
			"ok": {201, body}, "refuses": {409, `{"message":"taken"}` + "\n"}, "empty": {204, ""},
		} {
			for _, side := range []string{"outside", "inside"} {
				path := "/" + side + "/" + name + "/" + kind
				for i := range 3 {
					if status, replayed, got := send(path); status != want.status || got != want.body || replayed != (i > 0) {
						t.Errorf("%s, answer %d: %d %.40q, replayed %v", path, i+1, status, got, replayed)
					}
				}
			}
		}
		for range 2 { // released: it runs again
			if status, replayed, got := send("/outside/" + name + "/panics"); status != 500 || replayed || !strings.Contains(got, "Internal Server Error") {
				t.Errorf("%s: a panic was answered with %d %q, replayed %v", name, status, got, replayed)
			}
		}
	}
	// Outside, a log line and a dump for each answer, replays included; inside, for each run.
	if n := log.count("Conflict"); n != 4 {
		t.Errorf("the logger saw %d conflicts, want 3 outside and 1 inside", n)
	}
	if n := log.count("dump " + body); n != 4 {
		t.Errorf("the body was dumped %d times, want 3 outside and 1 inside", n)
	}
}

// logged is what middlewares said.
type logged struct {
	mu    sync.Mutex
	lines []string
}

func (l *logged) add(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, line)
}

func (l *logged) count(line string) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, other := range l.lines {
		if other == line {
			n++
		}
	}
	return n
}

func unzipped(content []byte) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}
