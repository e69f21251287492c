package blob_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"gocloud.dev/blob"
	"gocloud.dev/blob/fileblob"

	reprisehttp "github.com/reprise-go/reprise/adapters/nethttp"
	repriseblob "github.com/reprise-go/reprise/blob"
	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/operate"
	"github.com/reprise-go/reprise/core/protocol"
)

// bucketKind is a kind of bucket, and the faults that it can have.
type bucketKind struct {
	open   func(*testing.T) *blob.Bucket
	faults map[string]func(broken bool)
}

// kinds returns the buckets that are tested.
func kinds(t *testing.T) map[string]bucketKind {
	t.Helper()
	server := startS3(t)
	breaks := func(fault http.HandlerFunc) func(bool) {
		return func(broken bool) {
			if !broken {
				fault = nil
			}
			server.fail(fault)
		}
	}
	directory := t.TempDir()
	return map[string]bucketKind{
		"s3": {
			open: func(t *testing.T) *blob.Bucket {
				t.Helper()
				return opened(t)(openS3(t.Context(), server.URL))
			},
			faults: map[string]func(bool){"refusing": breaks(refuse), "slow": breaks(hang), "cut": breaks(server.cut)},
		},
		"files": {
			open: func(t *testing.T) *blob.Bucket {
				t.Helper()
				return opened(t)(fileblob.OpenBucket(directory, &fileblob.Options{NoTempDir: true, Metadata: fileblob.MetadataDontWrite}))
			},
			faults: map[string]func(bool){"not mounted": func(broken bool) {
				from, to := directory, directory+".away"
				if !broken {
					from, to = to, from
				}
				must(t, os.Rename(from, to))
			}},
		},
	}
}

func opened(t *testing.T) func(*blob.Bucket, error) *blob.Bucket {
	t.Helper()
	return func(bucket *blob.Bucket, err error) *blob.Bucket {
		t.Helper()
		must(t, err)
		t.Cleanup(func() { _ = bucket.Close() })
		return bucket
	}
}

// service is a server of net/http that offloads to a bucket.
type service struct {
	t      *testing.T
	url    string
	client *http.Client
	bucket *blob.Bucket
	store  *repriseblob.Store
	guard  *protocol.Guard
	spool  string
	runs   atomic.Int64
}

// body is the service's response: too long for one part of an upload.
var body = func() []byte {
	b := make([]byte, 9<<20)
	(&pieces{left: int64(len(b))}).fill(b)
	return b
}()

// fill makes the whole body at once.
func (p *pieces) fill(b []byte) { _, _ = io.ReadFull(p, b) }

func serve(t *testing.T, bucket *blob.Bucket) *service {
	t.Helper()
	store, err := repriseblob.New(bucket, repriseblob.Config{Prefix: "reprise/" + strings.ReplaceAll(t.Name(), "/", "-") + "/"})
	must(t, err)
	engine, err := reprise.New(memstore.New(), reprise.Config{Log: slog.New(slog.DiscardHandler)})
	must(t, err)
	s := &service{t: t, bucket: bucket, store: store, spool: t.TempDir()}
	s.guard, err = protocol.Over(engine, protocol.Config{
		Offload: protocol.Offloading{Blobs: store, Dir: s.spool, Timeout: 5 * time.Second},
	})
	must(t, err)
	export := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		s.runs.Add(1)
		w.Header().Set("Content-Type", "text/csv")
		w.WriteHeader(http.StatusCreated)
		_, _ = io.CopyBuffer(struct{ io.Writer }{w}, bytes.NewReader(body), make([]byte, 32<<10))
	})
	server := httptest.NewServer(reprisehttp.Middleware(s.guard, reprisehttp.Unscoped)(export))
	s.url, s.client = server.URL, server.Client()
	t.Cleanup(func() {
		server.Close()
		if err := engine.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
		if left, err := os.ReadDir(s.spool); err != nil || len(left) > 0 {
			t.Errorf("left %v, %v in the directory of the temporary files", left, err)
		}
	})
	return s
}

// answer is a client's response.
type answer struct {
	status   int
	replayed bool
	code     string // of a problem
	omitted  bool
	body     []byte
	header   http.Header
}

func (s *service) ask(key string) answer {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, s.url, http.NoBody)
	must(s.t, err)
	req.Header.Set("Idempotency-Key", key)
	resp, err := s.client.Do(req)
	must(s.t, err)
	defer resp.Body.Close()
	a := answer{status: resp.StatusCode, replayed: resp.Header.Get("Idempotent-Replayed") == "true", header: resp.Header}
	a.omitted = resp.Header.Get("Idempotency-Body") == "omitted"
	if a.body, err = io.ReadAll(resp.Body); err != nil {
		s.t.Fatal(err)
	}
	if resp.Header.Get("Content-Type") == "application/problem+json" {
		_, a.code, _ = strings.Cut(string(a.body), `"code":"`)
		a.code, _, _ = strings.Cut(a.code, `"`)
	}
	return a
}

// wantWhole demands the whole body.
func (s *service) wantWhole(a answer, replayed bool) {
	s.t.Helper()
	if a.status != http.StatusCreated || a.replayed != replayed || !bytes.Equal(a.body, body) {
		s.t.Errorf("answered %d, replayed %t, with %d bytes; want 201, %t, %d bytes", a.status, a.replayed, len(a.body), replayed, len(body))
	}
	if got := a.header.Get("Content-Length"); replayed && got != strconv.Itoa(len(body)) {
		s.t.Errorf("the replay declares the length %q", got)
	}
}

// keys returns the keys below the store's prefix.
func (s *service) keys() (all []string) {
	s.t.Helper()
	for list := s.bucket.List(&blob.ListOptions{Prefix: "reprise/" + strings.ReplaceAll(s.t.Name(), "/", "-")}); ; {
		o, err := list.Next(s.t.Context())
		if errors.Is(err, io.EOF) {
			return all
		}
		must(s.t, err)
		all = append(all, o.Key)
	}
}

func TestR35Buckets(t *testing.T) {
	for name, kind := range kinds(t) {
		t.Run(name, func(t *testing.T) {
			bucket := kind.open(t)
			t.Run("replays are the first answer", func(t *testing.T) {
				s := serve(t, bucket)
				s.wantWhole(s.ask("key"), false)
				for range 2 {
					s.wantWhole(s.ask("key"), true)
				}
				s.wantWhole(s.ask("other"), false) // the same bytes are written again
				digest := sha256.Sum256(body)
				if keys := s.keys(); len(keys) != 1 || !strings.HasSuffix(keys[0], "/"+hex.EncodeToString(digest[:])) {
					t.Errorf("the bucket has %v", keys)
				}
				must(t, bucket.Delete(t.Context(), s.keys()[0]))
				if a := s.ask("key"); a.status != http.StatusConflict || a.code != "result-unavailable" || s.runs.Load() != 2 {
					t.Errorf("without the blob: answered %d %s, and ran %d times", a.status, a.code, s.runs.Load())
				}
			})
			for fault, breaks := range kind.faults {
				t.Run(fault, func(t *testing.T) {
					s := serve(t, bucket)
					s.wantWhole(s.ask("read"), false)
					breaks(true)
					if a := s.ask("read"); a.status != http.StatusServiceUnavailable || a.code != "store-unavailable" || a.header.Get("Retry-After") == "" {
						t.Errorf("a replay is answered %d %s with %d bytes", a.status, a.code, len(a.body))
					}
					first := s.ask("write")
					breaks(false)
					s.wantWhole(first, false)
					s.wantWhole(s.ask("read"), true)
					kept := s.ask("write")
					if kept.status != http.StatusCreated || !kept.omitted || !kept.replayed {
						t.Errorf("the retry of what was not kept is answered %d with %d bytes", kept.status, len(kept.body))
					}
					if stats := s.guard.Stats(); stats.Offloaded != 1 || stats.NotOffloaded != 1 || stats.BlobsUnread != 1 || stats.BlobsLost != 0 {
						t.Errorf("counted %+v", stats)
					}
					if s.runs.Load() != 2 {
						t.Errorf("ran %d times", s.runs.Load())
					}
				})
			}
			t.Run("sweep", func(t *testing.T) {
				s := serve(t, bucket)
				s.wantWhole(s.ask("key"), false)
				for i := range 1100 { // more than a page of a listing
					name := operate.BlobRef{SHA256: sha256.Sum256([]byte{byte(i), byte(i >> 8)}), Size: 1, Day: 20_000 + i%2}.Name()
					must(t, s.store.Put(t.Context(), name, io.NewSectionReader(strings.NewReader("x"), 0, 1)))
				}
				if swept, err := s.store.Sweep(t.Context(), 48*time.Hour); err != nil || swept != (repriseblob.Swept{Blobs: 1100, Bytes: 1100}) {
					t.Errorf("swept %+v, %v", swept, err)
				}
				s.wantWhole(s.ask("key"), true)
			})
		})
	}
}
