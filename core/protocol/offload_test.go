package protocol_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/store"
)

// blobs is a [protocol.BlobStore] in memory that tests break.
type blobs struct {
	put  func(ctx context.Context, name string, body *io.SectionReader) error // in place of Put
	open func(ctx context.Context, content []byte) (io.ReadCloser, error)     // in place of Open

	mu      sync.Mutex
	content map[string][]byte
}

func (b *blobs) Put(ctx context.Context, name string, body *io.SectionReader) error {
	if b.put != nil {
		return b.put(ctx, name, body)
	}
	content, err := io.ReadAll(body)
	if err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.content == nil {
		b.content = make(map[string][]byte)
	}
	b.content[name] = content
	return nil
}

func (b *blobs) Open(ctx context.Context, name string) (io.ReadCloser, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	content, ok := b.content[name]
	if !ok {
		return nil, fmt.Errorf("%w: %s", protocol.ErrNoBlob, name)
	}
	if b.open != nil {
		return b.open(ctx, content)
	}
	return io.NopCloser(bytes.NewReader(content)), nil
}

// change changes the bytes of every blob.
func (b *blobs) change(f func([]byte) []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for name, content := range b.content {
		if content = f(bytes.Clone(content)); content == nil {
			delete(b.content, name)
		} else {
			b.content[name] = content
		}
	}
}

// names returns the names of the blobs.
func (b *blobs) names() (names []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for name := range b.content {
		names = append(names, name)
	}
	return names
}

// offloading is a bench whose guard keeps bodies of more than 1,000 bytes in store.
type offloading struct {
	*bench

	store  *blobs
	dir    string
	events chan reprise.Event
}

func offload(t *testing.T, change func(*protocol.Config)) *offloading {
	t.Helper()
	return offloadIn(t, memstore.New(), change)
}

func offloadIn(t *testing.T, records store.Store, change func(*protocol.Config)) *offloading {
	t.Helper()
	o := &offloading{store: new(blobs), dir: t.TempDir(), events: make(chan reprise.Event, 100)}
	engine := must(reprise.New(records, reprise.Config{Observer: reprise.ObserverFunc(func(_ context.Context, e reprise.Event) {
		if e.Name() == "blob-error" {
			o.events <- e
		}
	})}))
	cfg := protocol.Config{
		Label: "orders", Offload: protocol.Offloading{Blobs: o.store, MaxBody: 1 << 20, MaxSpool: 4 << 20, Dir: o.dir}, Limits: protocol.Limits{ResponseBody: 1000},
	}
	if change != nil {
		change(&cfg)
	}
	cfg.Transactional = transacts(records)
	guard := must(protocol.Over(engine, cfg))
	o.bench = &bench{t, guard}
	t.Cleanup(func() {
		_ = engine.Close(context.WithoutCancel(t.Context()))
		if files, err := os.ReadDir(o.dir); err != nil || len(files) > 0 {
			t.Errorf("left %v, %v in the directory of the temporary files", files, err)
		}
	})
	return o
}

// wantReport demands that the observer was notified, and that the guard counted, one
// failure.
func (o *offloading) wantReport(counted uint64, message string) {
	o.t.Helper()
	select {
	case e := <-o.events:
		if !strings.Contains(e.Err.Error(), message) || e.Label != "orders" {
			o.t.Errorf("reported %+v, want %q", e, message)
		}
	default:
		o.t.Errorf("reported nothing, want %q", message)
	}
	if counted != 1 {
		o.t.Errorf("counted %d, want 1", counted)
	}
}

// large returns a body of n bytes that does not compress.
func large(n int) []byte {
	body := make([]byte, n)
	for i := range body {
		body[i] = byte(i ^ i>>8 ^ i>>16)
	}
	return body
}

// writes is a handler that writes body in pieces of the size.
func writes(body []byte, piece int) func(*protocol.Recorder, http.Header, *protocol.Exchange) {
	return func(rec *protocol.Recorder, h http.Header, _ *protocol.Exchange) {
		h.Set("Content-Type", "text/csv")
		h.Set("Location", "/exports/7")
		rec.WriteHeader(http.StatusCreated)
		for rest := body; len(rest) > 0; {
			n := min(piece, len(rest))
			_, _ = rec.Write(rest[:n])
			rest = rest[n:]
		}
	}
}

// problemCode returns the code of a problem.
func problemCode(w *httptest.ResponseRecorder) protocol.Code {
	var p struct {
		Code protocol.Code `json:"code"`
	}
	_ = json.Unmarshal(w.Body.Bytes(), &p)
	return p.Code
}

// wantProblem demands that a retry is answered by a problem, and not run.
func (o *offloading) wantProblem(key string, status int, code protocol.Code) *httptest.ResponseRecorder {
	o.t.Helper()
	w := o.run(key, func(*protocol.Recorder, http.Header, *protocol.Exchange) { o.t.Error("the handler ran again") })
	if w.Code != status || problemCode(w) != code || w.Header().Get("Idempotent-Replayed") != "" {
		o.t.Errorf("answered %d %.200q, want %d %s", w.Code, w.Body, status, code)
	}
	return w
}

// wantSummary demands that a retry gets the substitute for a body that was not kept.
func (o *offloading) wantSummary(key string) {
	o.t.Helper()
	w := o.replay(key)
	if w.Code != 201 || w.Body.String() != `{"status":"completed"}` || w.Header().Get("Idempotency-Body") != "omitted" {
		o.t.Errorf("answered %d %v %.200q, want the summary", w.Code, w.Header(), w.Body)
	}
}

func TestR35BlobIsNamedByDayAndDigest(t *testing.T) {
	t.Parallel()
	const digest = "bb0381c13e0817201355e7d700b7623f0e985287add78712a11407c9f754efc8"
	before := time.Now().UTC().Format("20060102")
	o := offload(t, nil)
	body := []byte(strings.Repeat("a", 1001))
	o.run("key", writes(body, 500))
	o.run("other key", writes(body, 500))
	after := time.Now().UTC().Format("20060102")
	names := o.store.names()
	if len(names) > 1 && before == after {
		t.Errorf("equal bodies have the blobs %v", names)
	}
	for _, name := range names {
		if name != before+"/"+digest && name != after+"/"+digest {
			t.Errorf("blob %s, want %s/%s", name, before, digest)
		}
	}
}

func TestR35LostOrDamagedBlobIsNeverReplayed(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func([]byte) []byte{
		"missing":      func([]byte) []byte { return nil },
		"empty":        func([]byte) []byte { return []byte{} },
		"short":        func(b []byte) []byte { return b[:len(b)-1] },
		"long":         func(b []byte) []byte { return append(b, 0) },
		"last byte":    func(b []byte) []byte { b[len(b)-1] ^= 0x80; return b },
		"another blob": func(b []byte) []byte { return bytes.Repeat([]byte("x"), len(b)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := offload(t, nil)
			o.run("key", writes(large(5000), 500))
			var original []byte
			o.store.change(func(b []byte) []byte { original = bytes.Clone(b); return change(b) })
			w := o.wantProblem("key", 409, protocol.CodeResultUnavailable)
			if w.Header().Get("Retry-After") != "" {
				t.Error("the client is asked to come back")
			}
			o.wantReport(o.guard.Stats().BlobsLost, "is not replayed")
			if name != "missing" { // a restored blob restores the replays
				o.store.change(func([]byte) []byte { return original })
				if !bytes.Equal(o.replay("key").Body.Bytes(), original) {
					t.Error("the restored blob is not replayed")
				}
			}
		})
	}
}

func TestR35BlobStoreThatFailsForNowIsRetryable(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(ctx context.Context, content []byte) (io.ReadCloser, error){
		"refuses": func(context.Context, []byte) (io.ReadCloser, error) { return nil, errors.New("access denied") },
		"panics":  func(context.Context, []byte) (io.ReadCloser, error) { panic("no bucket") },
		"cut": func(_ context.Context, content []byte) (io.ReadCloser, error) {
			return io.NopCloser(io.MultiReader(bytes.NewReader(content[:3000]), failing{io.ErrUnexpectedEOF})), nil
		},
		"slow to open": func(ctx context.Context, _ []byte) (io.ReadCloser, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		},
		"slow to read": func(ctx context.Context, content []byte) (io.ReadCloser, error) {
			return io.NopCloser(io.MultiReader(bytes.NewReader(content[:3000]), waitingReader{ctx})), nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := offload(t, func(c *protocol.Config) { c.Offload.Timeout = 200 * time.Millisecond })
			body := large(5000)
			o.run("key", writes(body, 500))
			o.store.open = open
			w := o.wantProblem("key", 503, protocol.CodeStoreUnavailable)
			if w.Header().Get("Retry-After") == "" || !strings.Contains(w.Body.String(), "its response cannot be read at the moment") {
				t.Errorf("answered %v %s", w.Header(), w.Body)
			}
			o.wantReport(o.guard.Stats().BlobsUnread, "is not replayed")
			o.store.open = nil
			if !bytes.Equal(o.replay("key").Body.Bytes(), body) {
				t.Error("the blob is not replayed once its store is back")
			}
		})
	}
}

type waitingReader struct{ ctx context.Context }

func (r waitingReader) Read([]byte) (int, error) {
	<-r.ctx.Done()
	return 0, r.ctx.Err()
}

func TestR35ClientGetsItsResponseDespiteTheBlobStore(t *testing.T) {
	t.Parallel()
	for name, put := range map[string]func(ctx context.Context, name string, body *io.SectionReader) error{
		"refuses": func(context.Context, string, *io.SectionReader) error { return errors.New("access denied") },
		"panics":  func(context.Context, string, *io.SectionReader) error { panic("no bucket") },
		"hangs": func(ctx context.Context, _ string, _ *io.SectionReader) error {
			<-ctx.Done()
			return ctx.Err()
		},
		"slow, and asks nothing but the body": func(ctx context.Context, _ string, body *io.SectionReader) error {
			<-ctx.Done()
			_, err := io.Copy(io.Discard, body)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := offload(t, func(c *protocol.Config) { c.Offload.Timeout = 100 * time.Millisecond })
			o.store.put = put
			body := large(5000)
			if w := o.run("key", writes(body, 500)); w.Code != 201 || !bytes.Equal(w.Body.Bytes(), body) {
				t.Errorf("answered %d with %d bytes", w.Code, w.Body.Len())
			}
			o.wantReport(o.guard.Stats().NotOffloaded, "is not kept")
			o.wantSummary("key")
		})
	}
}

func TestR35SpoolOfOthersFillsMaxSpool(t *testing.T) {
	t.Parallel()
	o := offload(t, func(c *protocol.Config) { c.Offload.MaxBody, c.Offload.MaxSpool = 6000, 8000 })
	body := large(6000)
	o.run("key", func(rec *protocol.Recorder, h http.Header, x *protocol.Exchange) {
		writes(body, 500)(rec, h, x)
		o.run("other", writes(body, 500)) // while the first one holds its spool
		o.wantReport(o.guard.Stats().NotOffloaded, "MaxSpool")
	})
	o.wantSummary("other")
	if !bytes.Equal(o.replay("key").Body.Bytes(), body) {
		t.Error("the first one is not kept")
	}
	v := o.admit("key", "body")
	if v.Response.Stream == nil {
		t.Fatalf("answered %+v", v.Response)
	}
	o.wantProblem("key", 503, protocol.CodeStoreUnavailable) // while the replay holds its spool
	_ = v.Response.Stream.Close()
	if !bytes.Equal(o.replay("key").Body.Bytes(), body) {
		t.Error("the spool of a closed replay is not given back")
	}
}

func TestR35BlobIsWrittenBeforeTheRecord(t *testing.T) {
	t.Parallel()
	o := offload(t, nil)
	o.store.put = func(context.Context, string, *io.SectionReader) error {
		o.wantProblem("key", 409, protocol.CodeInProgress) //nolint:contextcheck // the retry has its own
		return errors.New("no")
	}
	o.run("key", writes(large(5000), 500))
	o.wantSummary("key")
}

func TestR23OffloadedBodyIsKeptForAClientThatLeft(t *testing.T) {
	t.Parallel()
	o := offload(t, nil)
	body := large(50_000)
	v := o.admit("key", "body")
	rec := new(protocol.Recorder)
	rec.Start(v.Exchange, http.Header{}, goneClient{}, http.DetectContentType)
	rec.WriteHeader(http.StatusCreated)
	for i := range 50 {
		must(rec.Write(body[i*1000 : (i+1)*1000]))
	}
	rec.Finish()
	rec.Close()
	if !bytes.Equal(o.replay("key").Body.Bytes(), body) {
		t.Error("the retry does not get the body")
	}
	// A client that leaves a replay leaves no spool or goroutine, as the bench checks.
	o.admit("key", "body").Response.Write(http.Header{}, goneClient{})
}

func TestR35GuardWithoutBlobsDoesNotRunAgain(t *testing.T) {
	t.Parallel()
	o := offload(t, nil)
	body := large(5000)
	o.run("key", writes(body, 500))
	with := o.guard
	for name, change := range map[string]func(*protocol.Config){
		"off":       func(c *protocol.Config) { c.Offload = protocol.Offloading{} },
		"read only": func(c *protocol.Config) { c.Offload.ReadOnly = true },
	} {
		o.guard = must(with.With(change))
		if name == "read only" {
			if !bytes.Equal(o.replay("key").Body.Bytes(), body) {
				t.Error("a guard that does not offload does not read either")
			}
			if first := o.run("own", writes(body, 500)); first.Code != http.StatusCreated {
				t.Errorf("a first response gets %d", first.Code)
			}
			if got := o.replay("own").Header().Get("Idempotency-Body"); got != "omitted" {
				t.Errorf("a guard that only reads offloads: Idempotency-Body is %q", got)
			}
			continue
		}
		o.wantProblem("key", 503, protocol.CodeStoreUnavailable)
		if e := <-o.events; !errors.Is(e.Err, store.ErrMisconfigured) {
			t.Errorf("reported %v", e.Err)
		}
	}
}

func TestR35AtomicResponseIsHeldBackAndOffloaded(t *testing.T) {
	t.Parallel()
	o := offloadIn(t, atomically(memstore.New()), nil)
	body := large(100_000)
	first := o.run("key", func(rec *protocol.Recorder, h http.Header, x *protocol.Exchange) {
		rec.WriteHeader(http.StatusCreated)
		_, _ = rec.Write(body)
		if rec.Flush() {
			t.Error("a part of the response left before its effects were committed")
		}
	})
	if first.Code != 201 || !bytes.Equal(first.Body.Bytes(), body) || first.Header().Get("Content-Length") != "100000" {
		t.Errorf("first answered %d %v with %d bytes", first.Code, first.Header(), first.Body.Len())
	}
	w := o.replay("key")
	if !bytes.Equal(w.Body.Bytes(), body) || w.Header().Get("Content-Type") != first.Header().Get("Content-Type") {
		t.Errorf("replayed %v with %d bytes", w.Header(), w.Body.Len())
	}
	if got := first.Header().Get("Content-Type"); got == "" {
		t.Error("the media type is not guessed")
	}
}

func TestR35AtomicResponseThatCannotBeKeptIsRolledBack(t *testing.T) {
	t.Parallel()
	o := offloadIn(t, atomically(memstore.New()), nil)
	o.store.put = func(context.Context, string, *io.SectionReader) error { return errors.New("access denied") }
	wantNotApplied(t, o.run("key", writes(large(5000), 500)))
	o.wantReport(o.guard.Stats().NotOffloaded, "access denied")
	o.store.put = nil
	if w := o.run("key", writes(large(5000), 500)); w.Code != 201 || w.Body.Len() != 5000 {
		t.Errorf("the retry is answered %d %.200q", w.Code, w.Body)
	}
	for name, handler := range map[string]func(*protocol.Recorder, http.Header, *protocol.Exchange){
		"too-long": writes(large(1<<20+1), 1<<15),
		"trailer": func(rec *protocol.Recorder, h http.Header, x *protocol.Exchange) {
			h.Set("Trailer", "X-Sum")
			h.Set("X-Sum", "a")
			writes(large(5000), 500)(rec, h, x)
		},
	} {
		if w := o.run(name, handler); w.Code != 500 || problemCode(w) != protocol.CodeResponseTooLarge {
			t.Errorf("%s: answered %d %.200q", name, w.Code, w.Body)
		}
	}
	released := func(rec *protocol.Recorder, _ http.Header, _ *protocol.Exchange) {
		rec.WriteHeader(http.StatusInternalServerError)
		_, _ = rec.Write(large(5000))
	}
	if w := o.run("released", released); w.Code != 500 || w.Body.Len() != 5000 {
		t.Errorf("a failure is answered %d with %d bytes", w.Code, w.Body.Len())
	}
	omitted := func(rec *protocol.Recorder, h http.Header, x *protocol.Exchange) {
		protocol.OmitBody(x.Context())
		writes(large(5000), 500)(rec, h, x)
	}
	if w := o.run("omitted", omitted); w.Code != 201 || w.Body.Len() != 5000 {
		t.Errorf("a body that is not to be stored is answered %d with %d bytes", w.Code, w.Body.Len())
	}
	o.wantSummary("omitted")
}
