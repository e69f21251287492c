package reprisegin

import (
	"bytes"
	"maps"
	"net/http"
	"sync"
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/store"
)

// timeout responds while the chain still runs in a goroutine, as the layer of gin-contrib
// does. It waits for a value of over instead of a clock, and signals ended when the chain
// returned.
func timeout(over <-chan struct{}, ended chan<- struct{}, abort bool) gin.HandlerFunc {
	return func(c *gin.Context) {
		outer := c.Writer
		w := &lateWriter{ResponseWriter: outer, header: http.Header{}}
		c.Writer = w
		done := make(chan struct{})
		go func() {
			c.Next()
			close(done)
			ended <- struct{}{}
		}()
		select {
		case <-done:
			w.send()
		case <-over:
			w.expire()
			outer.WriteHeader(http.StatusRequestTimeout)
			_, _ = outer.WriteString("late")
			if abort {
				c.AbortWithStatus(http.StatusRequestTimeout) // of the context that the chain still uses
			}
		}
	}
}

// lateWriter holds a response back until its handler returned.
type lateWriter struct {
	gin.ResponseWriter

	mu      sync.Mutex
	header  http.Header
	body    bytes.Buffer
	status  int
	expired bool
}

func (w *lateWriter) Header() http.Header { return w.header }

func (w *lateWriter) WriteHeader(status int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.status = status
}

func (w *lateWriter) Write(p []byte) (int, error) { return w.WriteString(string(p)) }

func (w *lateWriter) WriteString(s string) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.expired {
		return 0, http.ErrHandlerTimeout
	}
	return w.body.WriteString(s)
}

func (w *lateWriter) expire() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.expired = true
}

func (w *lateWriter) send() {
	maps.Copy(w.ResponseWriter.Header(), w.header)
	w.ResponseWriter.WriteHeader(w.status)
	_, _ = w.ResponseWriter.Write(w.body.Bytes())
}

// The client of a timeout outside gets that layer's answer; its retry gets the handler's,
// which ran once.
func TestRunOutlivesATimeoutOutside(t *testing.T) {
	t.Parallel()
	for name, abort := range map[string]bool{"answers": false, "answers and aborts": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, protocol.Config{})
			over, ended, answered := make(chan struct{}), make(chan struct{}, 2), make(chan struct{})
			b.POST("/orders", timeout(over, ended, abort), b.guarded, b.counted(func(c *gin.Context) {
				over <- struct{}{}
				<-answered
				created(c)
			}))
			if first := b.Send("POST", "/orders", "Idempotency-Key", "k"); first.Status != http.StatusRequestTimeout || first.Body != "late" {
				t.Errorf("the timeout answered %+v", first)
			}
			close(answered)
			<-ended
			again := b.Send("POST", "/orders", "Idempotency-Key", "k")
			if !again.Replayed() || again.Status != http.StatusCreated || again.Body != createdBody {
				t.Errorf("the retry got %+v", again)
			}
			b.Ran(1)
		})
	}
}

// Gin reuses its contexts: a chain that outlived its timeout may find another request in
// its own, with its own keys or none. Its writes went to that request, so it has no
// response to keep, and the context is not restored.
func TestContextThatServesAnotherRequest(t *testing.T) {
	t.Parallel()
	for name, keys := range map[string]map[string]any{"no keys": nil, "other keys": {"user": "ann"}, "another run": {store.ContextKey: t.Context()}} {
		b := setup(t, protocol.Config{})
		b.POST("/orders", func(c *gin.Context) {
			request, w := c.Request, c.Writer
			c.Next()
			if c.Request == request || c.Writer == w || len(c.Keys) != len(keys) {
				t.Errorf("%s: what belongs to another request was replaced", name)
			}
			c.Request, c.Writer = request, w
			c.AbortWithStatus(http.StatusRequestTimeout)
		}, b.guarded, b.counted(func(c *gin.Context) {
			c.Request = c.Request.Clone(t.Context()) // as Gin's pool does for the next request
			c.Writer = &lateWriter{ResponseWriter: c.Writer, header: http.Header{}}
			c.Keys = nil
			for key, value := range keys { // newer releases have keys of any type
				c.Set(key, value)
			}
			created(c)
		}))
		b.Afresh("POST", "/orders")
		b.Ran(2)
	}
}

// A value that a handler leaves in the context of the request, also in one of the two
// places of its run, makes it no other request.
func TestContextThatServesItsOwnRequest(t *testing.T) {
	t.Parallel()
	b := setup(t, protocol.Config{})
	for path, leaves := range map[string]gin.HandlerFunc{
		"/request": func(c *gin.Context) { c.Request = c.Request.Clone(t.Context()) },
		"/keys":    func(c *gin.Context) { c.Keys = nil },
		"/foreign": func(c *gin.Context) { c.Set(store.ContextKey, "ours") },
		"/both": func(c *gin.Context) {
			c.Request = c.Request.Clone(t.Context())
			c.Writer = struct{ gin.ResponseWriter }{c.Writer}
		},
	} {
		b.POST(path, b.guarded, b.counted(func(c *gin.Context) {
			leaves(c)
			created(c)
		}))
		if first, _ := b.Twice("POST", path); first.Body != createdBody {
			t.Errorf("%s: answered %+v", path, first)
		}
	}
	b.Ran(4)
}
