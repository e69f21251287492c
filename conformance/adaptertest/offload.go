package adaptertest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/reprise-go/reprise/conformance"

	"github.com/reprise-go/reprise/core/protocol"
)

// offloading serves a policy that keeps bodies of more than 1,000 bytes in a blob store
// of the case.
func (e *env) offloading() (*server, *blobStore) {
	e.Helper()
	blobs := &blobStore{content: make(map[string][]byte)}
	return e.serve(Options{Guard: protocol.Config{
		Limits:  protocol.Limits{ResponseBody: 1000},
		Offload: protocol.Offloading{Blobs: blobs, Dir: e.TempDir(), MaxBody: largeBody, MaxSpool: largeBody + 1<<20, Timeout: 5 * time.Second},
	}}), blobs
}

// largeBody is more than a connection takes from a server whose client does not read.
const largeBody = 3 << 20

var errBlobs = errors.New("the case says so")

var offloadCases = []testCase{
	{
		conformance.Case{ID: "R35f", Rule: "With Offload a response body over the limit is sent in full, and replayed in full with its length.", Source: "profile"},
		func(e *env) {
			srv, blobs := e.offloading()
			runs := 0
			for _, mode := range []WriteMode{WriteBytes, WriteString, WriteCopy} {
				for _, size := range []int{1001, 300_000} {
					p := oversized(size)
					p.Write = mode
					c := e.post(p).freshKey()
					first := srv.run(c)
					if first.body != string(PatternBody(size)) {
						srv.Fatalf("the first answer is %v", first)
					}
					runs++
					again := srv.replays(c, first)
					if got := again.values("Content-Length"); len(got) != 1 || got[0] != strconv.Itoa(size) {
						srv.Errorf("the replay declares the lengths %q, want %d", got, size)
					}
					srv.replays(c.with("Range", "bytes=0-9").with("If-None-Match", `"1"`), first)
				}
			}
			srv.ran(runs)
			if len(blobs.names()) == 0 {
				srv.Errorf("no blob was written")
			}
			small := e.post(oversized(1000)).freshKey()
			before := len(blobs.names())
			srv.replays(small, srv.run(small))
			if len(blobs.names()) != before {
				srv.Errorf("a body within the limit is in the blob store")
			}
		},
	},
	{
		conformance.Case{ID: "R35g", Rule: "With Offload a stream over the limit is sent as it is written, and replayed in full.", Source: "profile"},
		func(e *env) {
			srv := e.serve(Options{Guard: protocol.Config{
				Limits: protocol.Limits{ResponseBody: len(streamedBody) - 1}, Offload: protocol.Offloading{Blobs: &blobStore{content: make(map[string][]byte)}, Dir: e.TempDir()},
			}})
			c := e.post(streamed)
			first := srv.run(c)
			if first.body != streamedBody {
				srv.Errorf("streamed %v", first)
			}
			srv.replays(c, first)
			srv.ran(1)
		},
	},
	{
		conformance.Case{ID: "R35h", Rule: "A body whose blob is missing or damaged is never replayed in part, nor another one in its place: 409 result-unavailable, and nothing runs.", Source: "profile"},
		func(e *env) {
			srv, blobs := e.offloading()
			c := e.post(oversized(100_000))
			first := srv.run(c)
			for what, change := range inOrder(map[string]func([]byte) []byte{
				"missing": func([]byte) []byte { return nil },
				"altered": func(b []byte) []byte { b[len(b)-1] ^= 1; return b },
				"short":   func(b []byte) []byte { return b[:len(b)-1] },
				"long":    func(b []byte) []byte { return append(b, 0) },
			}) {
				restore := blobs.change(change)
				srv.refuses(c, protocol.CodeResultUnavailable)
				restore()
				if srv.Failed() {
					srv.Fatalf("the blob is %s", what)
				}
			}
			srv.replays(c, first)
			srv.ran(1)
		},
	},
	{
		conformance.Case{ID: "R35i", Rule: "A blob store that cannot be read for now answers 503 with Retry-After: nothing runs, and a later retry gets the replay.", Source: "profile"},
		func(e *env) {
			srv, blobs := e.offloading()
			c := e.post(oversized(100_000))
			first := srv.run(c)
			blobs.fail(nil, errBlobs)
			srv.refuses(c, protocol.CodeStoreUnavailable)
			blobs.fail(nil, nil)
			srv.replays(c, first)
			srv.ran(1)
		},
	},
	{
		conformance.Case{ID: "R35j", Rule: "A blob store that cannot be written costs the client nothing of its response; a retry gets the summary and does not run.", Source: "profile", Needs: []conformance.Need{conformance.Leases}},
		func(e *env) {
			srv, blobs := e.offloading()
			blobs.fail(errBlobs, nil)
			c := e.post(oversized(100_000))
			if first := srv.run(c); first.body != string(PatternBody(100_000)) {
				srv.Errorf("the first answer is %v", first)
			}
			srv.wantSummary(srv.send(c), 201)
			srv.ran(1)
		},
	},
	{
		conformance.Case{ID: "R35k", Rule: "Where effects commit with the response, a blob store that cannot be written undoes them: 503 not-applied, and a retry runs.", Source: "profile", Needs: []conformance.Need{conformance.AtomicClaims}},
		func(e *env) {
			srv, blobs := e.offloading()
			blobs.fail(errBlobs, nil)
			c := e.post(oversized(100_000))
			srv.wantProblem(srv.send(c), c, protocol.CodeNotApplied)
			blobs.fail(nil, nil)
			srv.replays(c, srv.run(c))
			srv.ran(2)
		},
	},
	{
		conformance.Case{ID: "R35l", Rule: "A client that leaves in the middle of a body that is offloaded, or of its replay, costs the next retry nothing.", Source: "profile"},
		func(e *env) {
			srv, _ := e.offloading()
			c := e.post(oversized(largeBody))
			leaves := func() {
				srv.eventually("the body begins", func() bool { // the room of the last replay may not be free yet
					w := srv.dial()
					defer w.conn.Close()
					w.write(c.bytes())
					return strings.HasSuffix(w.await("\r\n"), " 201 Created\r\n")
				})
			}
			leaves()
			var again answer
			srv.eventually("the first request completes", func() bool {
				again = srv.send(c)
				return again.status == 201
			})
			leaves()
			srv.eventually("the room of a replay whose client left is free", func() bool { // there is room for one
				again = srv.send(c)
				return again.status == 201
			})
			if again.body != string(PatternBody(largeBody)) || again.value(srv.control.Replayed) != "true" {
				srv.Fatalf("the retry is answered %v", again)
			}
			srv.ran(1)
		},
	},
	{
		conformance.Case{ID: "R35m", Rule: "A blob is written before the record completes: until then a retry gets 409 in-progress.", Source: "profile", Needs: []conformance.Need{conformance.Leases}},
		func(e *env) {
			srv, blobs := e.offloading()
			c := e.post(oversized(100_000))
			begun, goOn := make(chan struct{}), make(chan struct{})
			blobs.hold(func() {
				close(begun)
				<-goOn
			})
			first := srv.begin(c)
			<-begun
			srv.refuses(c, protocol.CodeInProgress)
			close(goOn)
			srv.replays(c, first.answer())
			srv.ran(1)
		},
	},
}

// blobStore is a [protocol.BlobStore] in memory that cases break.
type blobStore struct {
	mu                sync.Mutex
	content           map[string][]byte
	putError, opening error
	held              func() // called once, by the next Put
}

// Put implements [protocol.BlobStore].
func (b *blobStore) Put(_ context.Context, name string, body *io.SectionReader) error {
	b.mu.Lock()
	held, failed := b.held, b.putError
	b.held = nil
	b.mu.Unlock()
	if held != nil {
		held()
	}
	if failed != nil {
		return failed
	}
	content, err := io.ReadAll(body)
	if err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.content[name] = content
	return nil
}

// Open implements [protocol.BlobStore].
func (b *blobStore) Open(_ context.Context, name string) (io.ReadCloser, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.opening != nil {
		return nil, b.opening
	}
	content, ok := b.content[name]
	if !ok {
		return nil, fmt.Errorf("%w: %s", protocol.ErrNoBlob, name)
	}
	return io.NopCloser(bytes.NewReader(content)), nil
}

// fail makes Put and Open fail from now on.
func (b *blobStore) fail(put, opening error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.putError, b.opening = put, opening
}

// hold has the next Put call f.
func (b *blobStore) hold(f func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.held = f
}

// change changes every blob, and returns a function that restores them.
func (b *blobStore) change(f func([]byte) []byte) (restore func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	before := b.content
	b.content = make(map[string][]byte)
	for name, content := range before {
		if changed := f(bytes.Clone(content)); changed != nil {
			b.content[name] = changed
		}
	}
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.content = before
	}
}

// names returns the names of the blobs.
func (b *blobStore) names() (names []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for name := range b.content {
		names = append(names, name)
	}
	return names
}
