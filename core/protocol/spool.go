package protocol

import (
	"bufio"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"time"

	"github.com/reprise-go/reprise/core/protocol/internal/record"
)

// spool is a body on its way to the blob store or back, in a temporary file. The file has
// no name where the system lets an open file be removed, so that it disappears when the
// process dies. It is not safe for concurrent use.
//
// The bytes of the file are those of the blob, and encrypted where the record is sealed.
// Write is the only way in, body the only
// way to a client, and section the way to the blob store.
type spool struct {
	g     *Guard
	limit int64 // of the written bytes

	file  *os.File
	name  string // of the file, to be removed at the end; empty: it has none any more
	out   *bufio.Writer
	sum   hash.Hash
	size  int64
	seal  *record.BlobSealer // of a body that is encrypted; else nil
	key   *record.BlobKey    // of a file that is encrypted; else nil
	ended error              // why the spool is of no use; nil while it is
}

const spoolBuffer = 16 << 10

var (
	errSpoolLimit  = errors.New("reprise: the body is longer than Config.Offload.MaxBody")
	errSpoolFull   = errors.New("reprise: the temporary files of the guard have reached Config.Offload.MaxSpool")
	errSpoolClosed = errors.New("reprise: a temporary file was used after it was closed")
)

// newSpool returns a spool for a body of at most limit bytes. Its caller closes it.
func newSpool(g *Guard, limit int64) (*spool, error) {
	f, err := os.CreateTemp(g.cfg.Offload.Dir, "reprise-*.spool")
	if err != nil {
		return nil, fmt.Errorf("reprise: no temporary file for a response body: %w", err)
	}
	s := &spool{g: g, limit: limit, file: f, out: bufio.NewWriterSize(f, spoolBuffer), sum: sha256.New()}
	if os.Remove(f.Name()) != nil { // as on Windows
		s.name = f.Name()
	}
	return s, nil
}

// Write implements [io.Writer]. After an error the spool is of no use, and its file is
// gone.
func (s *spool) Write(p []byte) (int, error) {
	switch {
	case s.ended != nil:
		return 0, s.ended
	case s.length()+int64(len(p)) > s.limit:
		return 0, s.end(errSpoolLimit)
	}
	var err error
	if s.seal != nil {
		err = s.seal.Write(p, s.write)
	} else {
		err = s.write(p)
	}
	if err != nil {
		return 0, err
	}
	return len(p), nil
}

// encrypt makes the spool encrypt the bytes written from now on.
func (s *spool) encrypt() {
	s.seal = record.NewBlobSealer()
	s.key = s.seal.Key()
}

// write writes bytes of the blob.
func (s *spool) write(p []byte) error {
	if s.g.spooled.Add(int64(len(p))) > s.g.cfg.Offload.MaxSpool {
		s.g.spooled.Add(-int64(len(p)))
		return s.end(errSpoolFull)
	}
	s.size += int64(len(p))
	s.sum.Write(p)
	if _, err := s.out.Write(p); err != nil {
		return s.end(fmt.Errorf("reprise: a temporary file cannot be written: %w", err))
	}
	return nil
}

// length returns how long the body is.
func (s *spool) length() int64 {
	if s.seal != nil {
		return s.seal.Size()
	}
	return s.size
}

// ref flushes the spool, and returns the reference to its bytes as a blob of today.
func (s *spool) ref() (record.Blob, error) {
	if s.ended != nil {
		return record.Blob{}, s.ended
	}
	if s.seal != nil {
		if err := s.seal.End(s.write); err != nil {
			return record.Blob{}, err
		}
	}
	if err := s.out.Flush(); err != nil {
		return record.Blob{}, s.end(fmt.Errorf("reprise: a temporary file cannot be written: %w", err))
	}
	ref := record.Blob{Size: s.size, Day: record.Day(time.Now()), Key: s.key}
	s.sum.Sum(ref.SHA256[:0])
	return ref, nil
}

// section returns the bytes of a flushed spool, to be read until ctx ends.
func (s *spool) section(ctx context.Context) *io.SectionReader {
	return io.NewSectionReader(readerUntil{ctx, s.file}, 0, s.size)
}

// readerUntil fails once its context has ended.
type readerUntil struct {
	ctx context.Context
	r   io.ReaderAt
}

// ReadAt implements [io.ReaderAt].
func (r readerUntil) ReadAt(p []byte, off int64) (int, error) {
	if r.ctx.Err() != nil {
		return 0, context.Cause(r.ctx)
	}
	return r.r.ReadAt(p, off)
}

// body returns a reader of the whole body for a client, which closes the spool.
func (s *spool) body() io.ReadCloser {
	file := io.NewSectionReader(s.file, 0, s.size)
	if s.key != nil {
		return &spoolBody{Reader: record.NewBlobOpener(file, s.key), spool: s}
	}
	return &spoolBody{Reader: file, spool: s}
}

type spoolBody struct {
	io.Reader

	spool *spool
}

// Close implements [io.Closer].
func (b *spoolBody) Close() error {
	b.spool.Close()
	return nil
}

// end removes the file for a reason, and returns it.
func (s *spool) end(reason error) error {
	if s.ended != nil {
		return s.ended
	}
	s.ended = reason
	_ = s.file.Close() // its bytes are not needed
	if s.name != "" {
		_ = os.Remove(s.name)
	}
	s.g.spooled.Add(-s.size)
	return reason
}

// Close removes the file.
func (s *spool) Close() { _ = s.end(errSpoolClosed) }
