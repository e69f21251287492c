package protocol_test

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/store"
)

// onDisk returns the content of the temporary files that are open in the directory of a
// bench. They have no name.
func (o *offloading) onDisk() (files [][]byte) {
	o.t.Helper()
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		o.t.Fatal(err)
	}
	for _, fd := range fds {
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
	for name, records := range map[string]store.Store{"leased": memstore.New(), "atomic": atomically{memstore.New()}} {
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

// A body that is to be sealed is in the clear in no temporary file, on its way there or
// back.
func TestSealedBodyIsOnNoDiskInTheClear(t *testing.T) {
	t.Parallel()
	o := offload(t, func(c *protocol.Config) { c.Seal.Secret = secret(t, "1") })
	sealed := func(when string) {
		t.Helper()
		files := o.onDisk()
		if len(files) != 1 || len(files[0]) < 100_000 || bytes.Contains(files[0], []byte("4111")) {
			t.Errorf("%s: %d temporary files, want one that is encrypted", when, len(files))
		}
	}
	o.run("key", func(rec *protocol.Recorder, _ http.Header, _ *protocol.Exchange) {
		writesPrivate(rec)
		sealed("while the handler runs")
	})
	replay := o.admit("key", "body").Response
	sealed("replay")
	w := httptest.NewRecorder()
	replay.Write(w.Header(), w)
	if !strings.HasPrefix(w.Body.String(), private) {
		t.Errorf("replayed %.100q", w.Body)
	}
}
