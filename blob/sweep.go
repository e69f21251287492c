package repriseblob

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"gocloud.dev/blob"
	"gocloud.dev/gcerrors"

	"github.com/reprise-go/reprise/core/store"
)

// Swept is the result of a sweep.
type Swept struct {
	Blobs int
	Bytes int64
}

const (
	dayLayout = "20060102"
	day       = 24 * time.Hour
)

// Sweep deletes the blobs whose records have ended: those of days that ended more than
// olderThan ago. Make olderThan the longest retention of the guards that use the prefix,
// plus a day for clock differences and background completions. Less than a day is refused
// with [store.ErrInvalid]. A longer retention does not bring back swept blobs.
//
// A sweep goes by the day in a blob's name. No blob gets the name of a past day, so a
// sweep cannot delete the blob of a response that is being recorded. It touches no other
// object under the prefix. A blob that cannot be deleted, such as one under a legal hold,
// does not keep the others. After 100 failures in a row, though, a sweep leaves each day
// at its first failure, until it deletes a blob again. When a sweep fails or ctx ends, it
// returns the number deleted so far, and the next sweep continues.
func (s *Store) Sweep(ctx context.Context, olderThan time.Duration) (Swept, error) {
	return s.sweep(ctx, olderThan, time.Now())
}

func (s *Store) sweep(ctx context.Context, olderThan time.Duration, now time.Time) (swept Swept, err error) {
	if olderThan < day {
		return swept, fmt.Errorf("%w: Sweep of blobs older than %v, want 24h at least", store.ErrInvalid, olderThan)
	}
	// The day of this instant ended less than olderThan ago; the days before it, more.
	first := now.Add(-olderThan).UTC().Format(dayLayout)
	days := s.bucket.List(&blob.ListOptions{Prefix: s.cfg.Prefix, Delimiter: "/"})
	var kept failures
	for {
		d, err := days.Next(ctx)
		if errors.Is(err, io.EOF) {
			return swept, kept.first
		}
		if err != nil {
			return swept, fmt.Errorf("repriseblob: list %s: %w", s.cfg.Prefix, err)
		}
		name := strings.TrimSuffix(strings.TrimPrefix(d.Key, s.cfg.Prefix), "/")
		if !d.IsDir || len(name) != len(dayLayout) || strings.Trim(name, "0123456789") != "" || name >= first {
			continue
		}
		if err := s.sweepDay(ctx, d.Key, &swept, &kept); err != nil {
			return swept, err
		}
	}
}

// mostFailures bounds the failures in a row before a sweep leaves a day: a sweep without
// the right to delete must not try every blob. It does not end the sweep, which has to
// reach the days after those under a legal hold.
const mostFailures = 100

// failures are those of a sweep to delete a blob.
type failures struct {
	first error
	inRow int
}

// sweepDay deletes the blobs whose keys begin with prefix. It goes on after one that it
// cannot delete, up to mostFailures in a row.
func (s *Store) sweepDay(ctx context.Context, prefix string, swept *Swept, kept *failures) error {
	blobs := s.bucket.List(&blob.ListOptions{Prefix: prefix})
	for {
		b, err := blobs.Next(ctx)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("repriseblob: list %s: %w", prefix, err)
		}
		if b.IsDir || !isBlob(strings.TrimPrefix(b.Key, s.cfg.Prefix)) {
			continue
		}
		if ctx.Err() != nil { // a driver may ignore ctx
			return context.Cause(ctx)
		}
		err = s.bucket.Delete(ctx, b.Key)
		if err != nil && gcerrors.Code(err) != gcerrors.NotFound { // another sweep was faster
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if kept.first == nil {
				kept.first = fmt.Errorf("repriseblob: delete %s: %w", b.Key, err)
			}
			if kept.inRow++; kept.inRow >= mostFailures {
				return nil
			}
			continue
		}
		kept.inRow = 0
		swept.Blobs++
		swept.Bytes += b.Size
	}
}
