// Package spool keeps bodies in temporary files, on their way to a blob store or back.
package spool

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/reprise-go/reprise/core/internal/record"
)

// Files makes the spools of a guard, and bounds their bytes together. It is safe for
// concurrent use, and must not be copied after its first use.
type Files struct {
	Dir string // of the files; empty: [os.TempDir]
	Max int64  // bytes of all of them at a time

	used atomic.Int64

	mu   sync.Mutex
	sent map[*body]struct{} // bodies that are being sent
}

// Spool is a body on its way to the blob store or back, in a temporary file. The file has
// no name where the system lets an open file be removed, so that it disappears when the
// process dies. It is not safe for concurrent use.
//
// The file has the bytes of the blob, encrypted with a key that only the process has: no
// part of a body is on the disk in the clear. Write is the only way in, Body the only way
// to a client, and Section the way to the blob store.
type Spool struct {
	files *Files
	limit int64 // of the written bytes

	file  *os.File
	name  string // of the file, to be removed at the end; empty: it has none any more
	cover *cover
	sum   hash.Hash
	size  int64
	seal  *record.BlobSealer // of a body whose blob is to be encrypted; else nil
	key   *record.BlobKey    // of a blob that is encrypted; else nil
	ended error              // why the spool is of no use; nil while it is
}

var (
	// ErrLimit says that a body is longer than its limit.
	ErrLimit = errors.New("reprise: the body is longer than Config.Offload.MaxBody")

	// ErrFull says that the bodies of all spools are as long as Files.Max together.
	ErrFull = errors.New("reprise: the temporary files of the guard have reached Config.Offload.MaxSpool")

	errUnread = errors.New("reprise: a response body was not read for a while, and gave its temporary file up for another")
	errClosed = errors.New("reprise: a temporary file was used after it was closed")
)

// New returns a spool for a body of at most limit bytes. Its caller closes it.
func (d *Files) New(limit int64) (*Spool, error) {
	f, err := os.CreateTemp(d.Dir, "reprise-*.spool")
	if err != nil {
		return nil, fmt.Errorf("reprise: no temporary file for a response body: %w", err)
	}
	s := &Spool{files: d, limit: limit, file: f, cover: newCover(f), sum: sha256.New()}
	if os.Remove(f.Name()) != nil { // as on Windows
		s.name = f.Name()
	}
	return s, nil
}

// Write implements [io.Writer]. After an error the spool is of no use, and its file is
// gone.
func (s *Spool) Write(p []byte) (int, error) {
	switch {
	case s.ended != nil:
		return 0, s.ended
	case s.Length()+int64(len(p)) > s.limit:
		return 0, s.end(ErrLimit)
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

// Encrypt makes the bytes written from now on those of an encrypted blob.
func (s *Spool) Encrypt() {
	s.seal = record.NewBlobSealer()
	s.key = s.seal.Key()
}

// DecryptWith makes Body decrypt the blob that was written with its key; nil leaves it as
// it is.
func (s *Spool) DecryptWith(key *record.BlobKey) { s.key = key }

// write writes bytes of the blob.
func (s *Spool) write(p []byte) error {
	if !s.files.take(int64(len(p))) {
		return s.end(ErrFull)
	}
	s.size += int64(len(p))
	s.sum.Write(p)
	if err := s.cover.write(p); err != nil {
		return s.end(fmt.Errorf("reprise: a temporary file cannot be written: %w", err))
	}
	return nil
}

// Length returns how long the body is.
func (s *Spool) Length() int64 {
	if s.seal != nil {
		return s.seal.Size()
	}
	return s.size
}

// Ref flushes the spool, and returns the reference to its bytes as a blob of today.
func (s *Spool) Ref() (record.Blob, error) {
	if s.ended != nil {
		return record.Blob{}, s.ended
	}
	if s.seal != nil {
		if err := s.seal.End(s.write); err != nil {
			return record.Blob{}, err
		}
	}
	if err := s.cover.flush(); err != nil {
		return record.Blob{}, s.end(fmt.Errorf("reprise: a temporary file cannot be written: %w", err))
	}
	ref := record.Blob{Size: s.size, Day: record.Day(time.Now()), Key: s.key}
	s.sum.Sum(ref.SHA256[:0])
	return ref, nil
}

// Section returns the bytes of a flushed spool, to be read until ctx ends.
func (s *Spool) Section(ctx context.Context) *io.SectionReader {
	return io.NewSectionReader(readerUntil{ctx, s.cover}, 0, s.size)
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

// end removes the file for a reason, and returns it.
func (s *Spool) end(reason error) error {
	if s.ended != nil {
		return s.ended
	}
	s.ended = reason
	_ = s.file.Close() // its bytes are not needed
	if s.name != "" {
		_ = os.Remove(s.name)
	}
	s.files.used.Add(-s.size)
	return reason
}

// Close removes the file.
func (s *Spool) Close() { _ = s.end(errClosed) }
