package adaptertest

import (
	"bytes"
	"context"
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

var offloadCases = []testCase{
	{
		conformance.Case{ID: "R35f", Rule: "With Offload a response body over the limit is sent in full, and replayed in full with its length.", Source: "profile"},
		func(e *env) {
			srv, blobs := e.offloading()
			runs := 0
			for _, mode := range []WriteMode{WriteBytes, WriteString, WriteCopy} {
				for _, size := range []int{1001, 70_000} {
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
			if blobs.count() == 0 {
				srv.Errorf("no blob was written")
			}
			small := e.post(oversized(1000)).freshKey()
			before := blobs.count()
			srv.replays(small, srv.run(small))
			if blobs.count() != before {
				srv.Errorf("a body within the limit is in the blob store")
			}
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
			if again.body != string(PatternBody(largeBody)) || again.value(protocol.FieldReplayed) != "true" {
				srv.Fatalf("the retry is answered %v", again)
			}
			srv.ran(1)
		},
	},
}

// blobStore is a [protocol.BlobStore] in memory.
type blobStore struct {
	mu      sync.Mutex
	content map[string][]byte
}

// Put implements [protocol.BlobStore].
func (b *blobStore) Put(_ context.Context, name string, body *io.SectionReader) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	content, err := io.ReadAll(body)
	b.content[name] = content
	return err
}

// Open implements [protocol.BlobStore].
func (b *blobStore) Open(_ context.Context, name string) (io.ReadCloser, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	content, ok := b.content[name]
	if !ok {
		return nil, fmt.Errorf("%w: %s", protocol.ErrNoBlob, name)
	}
	return io.NopCloser(bytes.NewReader(content)), nil
}

// count returns how many blobs there are.
func (b *blobStore) count() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.content)
}
