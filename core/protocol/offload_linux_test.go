package protocol_test

import (
	"bytes"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"

	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/store"
)

// onDisk returns the content of the temporary files that are open in the directory of a
// bench. They have no name.
func (o *offloading) onDisk() (files [][]byte) {
	o.t.Helper()
	for _, fd := range must(os.ReadDir("/proc/self/fd")) {
		path := "/proc/self/fd/" + fd.Name()
		if name, err := os.Readlink(path); err != nil || !strings.HasPrefix(name, o.dir+"/") {
			continue // also the one of the listing, which is closed by now
		}
		content, err := os.ReadFile(path)
		if err != nil {
			o.t.Error(err)
		}
		files = append(files, content)
	}
	return files
}

const private = "card 4111 1111 1111 1111 "

// writesPrivate is a handler that writes a large private body with status 201.
func writesPrivate(rec *protocol.Recorder) {
	rec.WriteHeader(http.StatusCreated)
	for range 200 {
		_, _ = rec.WriteString(strings.Repeat(private, 40))
	}
}

// R36: a body that its handler omits is on no disk in the clear, and in no blob, whatever
// the way that it takes.
func TestR36OmittedBodyIsOnNoDiskInTheClear(t *testing.T) {
	t.Parallel()
	size := 200 * 40 * len(private)
	for name, records := range map[string]store.Store{"leased": memstore.New(), "atomic": atomically(memstore.New())} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := offloadIn(t, records, nil)
			absent := func(when string) {
				t.Helper()
				for _, content := range o.onDisk() {
					if bytes.Contains(content, []byte("4111")) {
						t.Errorf("%s: a temporary file of %d bytes has the body", when, len(content))
					}
				}
			}
			first := o.run("key", func(rec *protocol.Recorder, _ http.Header, x *protocol.Exchange) {
				protocol.OmitBody(x.Context())
				writesPrivate(rec)
				absent("while the handler runs")
			})
			if first.Code != 201 || first.Body.Len() != size || strings.ReplaceAll(first.Body.String(), private, "") != "" {
				t.Errorf("answered %d with %d bytes, want all %d", first.Code, first.Body.Len(), size)
			}
			o.wantSummary("key")

			o.run("late", func(rec *protocol.Recorder, _ http.Header, x *protocol.Exchange) {
				rec.WriteHeader(http.StatusCreated)
				_, _ = rec.WriteString(strings.Repeat("prefix ", 1000))
				protocol.OmitBody(x.Context())
				writesPrivate(rec)
				absent("omitted late")
			})
			o.wantSummary("late")

			a := o.admit("reader", "body") // as an adapter whose framework gives it a reader
			capture := a.Exchange.Capture(-1)
			protocol.OmitBody(a.Exchange.Context())
			body := strings.Repeat(private, 8000)
			_, err := capture.ReadFrom(strings.NewReader(body))
			absent("captured")
			reply := a.Exchange.Finish(capture.Captured(201, err))
			if reply.Stream != nil {
				_ = reply.Stream.Close()
			}
			a.Exchange.Close()
			o.wantSummary("reader")
			if names := o.store.names(); len(names) > 0 {
				t.Errorf("wrote the blobs %v", names)
			}
			if files := o.onDisk(); len(files) > 0 {
				t.Errorf("left %d temporary files open", len(files))
			}
		})
	}
}

const fullDisk = "REPRISE_TEST_FULL_DISK"

// R35: a disk that takes no more costs a client nothing of its response, and its retries
// get the summary; where the effects commit with the response they are rolled back, and
// the client is told to retry. It is the limit of the system for files, in a process of
// its own.
func TestR35FullDiskIsRetryable(t *testing.T) {
	t.Parallel()
	if os.Getenv(fullDisk) == "" {
		child := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v") //nolint:noctx,gosec // itself, under its own time limit
		child.Env = append(os.Environ(), fullDisk+"=yes")
		if out, err := child.CombinedOutput(); err != nil || !bytes.Contains(out, []byte("--- PASS: "+t.Name())) {
			t.Errorf("%v: %s", err, out)
		}
		return
	}
	signal.Ignore(syscall.SIGXFSZ)
	size := func(limit uint64) {
		t.Helper()
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: limit, Max: 1 << 40}); err != nil {
			t.Fatal(err)
		}
	}
	body := large(100_000)
	for _, room := range []uint64{0, 16 << 10, 99_999} { // 99,999: it is full at the very end
		leased, atomic := offload(t, nil), offloadIn(t, atomically(memstore.New()), nil)
		size(room)
		if w := leased.run("key", writes(body, 500)); w.Code != 201 || !bytes.Equal(w.Body.Bytes(), body) {
			t.Errorf("%d bytes of room: answered %d with %d bytes", room, w.Code, w.Body.Len())
		}
		leased.wantReport(leased.guard.Stats().NotOffloaded, "file too large")
		leased.wantSummary("key")
		wantNotApplied(t, atomic.run("key", writes(body, 500)))
		atomic.wantReport(atomic.guard.Stats().NotOffloaded, "file too large")
		reply := atomic.finish("memory", protocol.Captured{Status: 201, Body: body})
		if code := replyCode(t, reply); code != protocol.CodeNotApplied || reply.Response.Status != 503 {
			t.Errorf("%d bytes of room, a body in memory: answered %d %s", room, reply.Response.Status, code)
		}
		size(1 << 40)
		for _, key := range []string{"key", "memory"} {
			if w := atomic.run(key, writes(body, 500)); w.Code != 201 || !bytes.Equal(w.Body.Bytes(), body) {
				t.Errorf("with room again, answered %d with %d bytes", w.Code, w.Body.Len())
			}
		}
		size(room)
		w := atomic.wantProblem("key", 503, protocol.CodeStoreUnavailable)
		if w.Header().Get("Retry-After") == "" {
			t.Error("the client of a replay is not asked to come back")
		}
		size(1 << 40)
		if !bytes.Equal(atomic.replay("key").Body.Bytes(), body) {
			t.Error("with room again, the replay has another body")
		}
	}
}
