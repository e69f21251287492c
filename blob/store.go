package repriseblob

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"gocloud.dev/blob"
	"gocloud.dev/gcerrors"

	"github.com/reprise-go/reprise/core/protocol"
	"github.com/reprise-go/reprise/core/store"
)

// Config says how a [Store] uses its bucket. The zero value is valid.
type Config struct {
	// Prefix begins every key, such as "reprise/". Services that share a bucket may share a
	// prefix; one sweep then serves all of them. The default is none.
	Prefix string
}

// Store is a [protocol.BlobStore] over a bucket. It is safe for concurrent use, and does
// not close the bucket.
type Store struct {
	bucket *blob.Bucket
	cfg    Config
	files  bool // the bucket is a directory
}

var _ protocol.BlobStore = (*Store)(nil)

// New returns a store over bucket. The error wraps [store.ErrInvalid].
func New(bucket *blob.Bucket, cfg Config) (*Store, error) {
	if bucket == nil {
		return nil, fmt.Errorf("%w: New needs a bucket", store.ErrInvalid)
	}
	var directory os.FileInfo
	return &Store{bucket: bucket, cfg: cfg, files: bucket.As(&directory)}, nil
}

// Put implements [protocol.BlobStore].
func (s *Store) Put(ctx context.Context, name string, body *io.SectionReader) error {
	ctx, cancel := context.WithCancel(ctx) // the way to give up a write
	defer cancel()
	options := &blob.WriterOptions{ContentType: "application/octet-stream"}
	if !s.mounted() {
		return errNotMounted
	}
	key, from := s.cfg.Prefix+name, &source{SectionReader: body, failed: cancel}
	var err error
	if s.files {
		err = s.writeFile(ctx, cancel, key, from, options)
	} else {
		err = s.bucket.Upload(ctx, key, from, options)
	}
	if err != nil {
		return fmt.Errorf("repriseblob: write %s: %w", key, err)
	}
	return nil
}

const copyBuffer = 32 << 10

// writeFile writes to a directory. Upload would give a file its final name even if the
// disk was full in the middle of it.
func (s *Store) writeFile(ctx context.Context, cancel context.CancelFunc, key string, from io.Reader, options *blob.WriterOptions) error {
	w, err := s.bucket.NewWriter(ctx, key, options)
	if err != nil {
		return err
	}
	// The writer would take a buffer of a megabyte.
	_, err = io.CopyBuffer(struct{ io.Writer }{w}, struct{ io.Reader }{from}, make([]byte, copyBuffer))
	if err != nil {
		cancel()
	}
	return errors.Join(err, w.Close())
}

// source is a body that cancels the write when a read fails: a driver that only stops
// reading might keep the part that it has as the whole body. It shows the driver that
// parts can be read at once, so that they need not be in memory.
type source struct {
	*io.SectionReader

	failed func()
}

// Read implements [io.Reader].
func (s *source) Read(p []byte) (int, error) {
	n, err := s.SectionReader.Read(p)
	return n, s.check(err)
}

// ReadAt implements [io.ReaderAt].
func (s *source) ReadAt(p []byte, off int64) (int, error) {
	n, err := s.SectionReader.ReadAt(p, off)
	return n, s.check(err)
}

func (s *source) check(err error) error {
	if err != nil && err != io.EOF { //nolint:errorlint // a wrapped one is a failure
		s.failed()
	}
	return err
}

// Open implements [protocol.BlobStore].
func (s *Store) Open(ctx context.Context, name string) (io.ReadCloser, error) {
	key := s.cfg.Prefix + name
	r, err := s.bucket.NewReader(ctx, key, nil)
	switch {
	case err == nil:
		return r, nil
	case gcerrors.Code(err) == gcerrors.NotFound && s.there(ctx):
		return nil, fmt.Errorf("%w: %s", protocol.ErrNoBlob, key)
	default:
		return nil, fmt.Errorf("repriseblob: read %s: %w", key, err)
	}
}

// there reports whether the bucket exists. If its name is wrong or its directory is not
// mounted, every blob is missing, which must not turn records into tombstones.
func (s *Store) there(ctx context.Context) bool {
	if !s.mounted() {
		return false
	}
	accessible, err := s.bucket.IsAccessible(ctx)
	return accessible && err == nil
}

var errNotMounted = errors.New("repriseblob: the directory of the bucket is missing; mount or create it")

// mounted reports whether the directory of a bucket of files exists. The driver does not
// check that: it would find no blob, and create the directory to write one.
func (s *Store) mounted() bool {
	var directory os.FileInfo
	return !s.files || s.bucket.As(&directory)
}

// isBlob reports whether name, without the prefix, is that of a blob: a day and a digest.
func isBlob(name string) bool {
	day, digest, ok := strings.Cut(name, "/")
	return ok && len(day) == 8 && len(digest) == 64 && strings.Trim(day, "0123456789") == "" && strings.Trim(digest, "0123456789abcdef") == ""
}
