package repriseblob

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"gocloud.dev/blob"
	"gocloud.dev/blob/driver"
	"gocloud.dev/blob/memblob"
	"gocloud.dev/gcerrors"

	"github.com/reprise-go/reprise/core/operate"
	"github.com/reprise-go/reprise/core/store"
)

func setup(t *testing.T, cfg Config) (*Store, *blob.Bucket) {
	t.Helper()
	bucket := memblob.OpenBucket(nil)
	t.Cleanup(func() { _ = bucket.Close() })
	s, err := New(bucket, cfg)
	must(t, err)
	return s, bucket
}

func section(text string) *io.SectionReader {
	return io.NewSectionReader(strings.NewReader(text), 0, int64(len(text)))
}

// named returns the name of a blob of the day.
func named(text, on string) string {
	at, err := time.Parse(dayLayout, on)
	if err != nil {
		panic(err)
	}
	return operate.BlobRef{SHA256: sha256.Sum256([]byte(text)), Size: int64(len(text)), Day: int(at.Unix() / 86400)}.Name()
}

func read(t *testing.T, s *Store, name string) string {
	t.Helper()
	r, err := s.Open(t.Context(), name)
	must(t, err)
	defer r.Close()
	content, err := io.ReadAll(r)
	must(t, err)
	return string(content)
}

func keys(t *testing.T, bucket *blob.Bucket) (all []string) {
	t.Helper()
	for list := bucket.List(nil); ; {
		o, err := list.Next(t.Context())
		if errors.Is(err, io.EOF) {
			return all
		}
		must(t, err)
		all = append(all, o.Key)
	}
}

// failing fails in the middle of a body.
type failing struct{}

var errDisk = errors.New("disk")

func (failing) ReadAt(p []byte, off int64) (int, error) {
	if off > 0 {
		return 0, errDisk
	}
	return copy(p, "part"), errDisk
}

func TestPutIsWholeOrNotAtAll(t *testing.T) {
	t.Parallel()
	s, bucket := setup(t, Config{})
	name := named("the whole body", "20261122")
	if err := s.Put(t.Context(), name, io.NewSectionReader(failing{}, 0, 14)); err == nil {
		t.Error("a part was written")
	}
	if got := keys(t, bucket); len(got) > 0 {
		t.Errorf("the bucket has %v", got)
	}
	must(t, s.Put(t.Context(), name, section("the whole body")))
	if err := s.Put(t.Context(), name, io.NewSectionReader(failing{}, 0, 14)); err == nil {
		t.Error("a part was written over the whole")
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Put(cancelled, name, section("the whole body")); err == nil {
		t.Error("wrote after the context ended")
	}
	if got := read(t, s, name); got != "the whole body" {
		t.Errorf("read %q", got)
	}
}

func TestSweepDeletesTheDaysBefore(t *testing.T) {
	t.Parallel()
	s, bucket := setup(t, Config{Prefix: "r/"})
	now := time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)
	put := func(names ...string) {
		for _, name := range names {
			must(t, s.Put(t.Context(), name, section("body")))
		}
	}
	old := []string{named("a", "19700101"), named("a", "20261119"), named("b", "20261119"), named("c", "20261120")}
	kept := []string{named("a", "20261121"), named("a", "20261122"), named("a", "20261123"), named("a", "99991231")}
	put(old...)
	put(kept...)
	others := []string{"r/20261119/not a blob", "r/2026/" + strings.Repeat("0", 64), "r/readme", "20261119/" + strings.Repeat("0", 64), "other/x"}
	for _, key := range others {
		must(t, bucket.WriteAll(t.Context(), key, []byte("x"), nil))
	}
	got, err := s.sweep(t.Context(), 24*time.Hour, now)
	if err != nil || got != (Swept{4, 16}) {
		t.Errorf("swept %+v, %v", got, err)
	}
	want := slices.Clone(others)
	for _, name := range kept {
		want = append(want, "r/"+name)
	}
	slices.Sort(want)
	if got := keys(t, bucket); !slices.Equal(got, want) {
		t.Errorf("left %v\nwant %v", got, want)
	}
	if got, err := s.sweep(t.Context(), 24*time.Hour, now); err != nil || got != (Swept{}) {
		t.Errorf("swept %+v again, %v", got, err)
	}
}

// TestSweepNeverMeetsAWriter shows the boundary: a blob from the last instant of a day is
// kept for the whole time.
func TestSweepNeverMeetsAWriter(t *testing.T) {
	t.Parallel()
	s, bucket := setup(t, Config{})
	name := named("a", "20261120")
	must(t, s.Put(t.Context(), name, section("body")))
	const olderThan = 48 * time.Hour
	end := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	if _, err := s.sweep(t.Context(), olderThan, end.Add(olderThan-time.Nanosecond)); err != nil || len(keys(t, bucket)) != 1 {
		t.Errorf("swept a blob that may be younger: %v, left %v", err, keys(t, bucket))
	}
	if _, err := s.sweep(t.Context(), olderThan, end.Add(olderThan)); err != nil || len(keys(t, bucket)) != 0 {
		t.Errorf("%v, left %v", err, keys(t, bucket))
	}
}

func TestSweepStops(t *testing.T) {
	t.Parallel()
	s, _ := setup(t, Config{})
	if _, err := s.Sweep(t.Context(), 24*time.Hour-1); !errors.Is(err, store.ErrInvalid) {
		t.Errorf("less than a day: %v", err)
	}
	for range 3 {
		must(t, s.Put(t.Context(), named("x", "20200101"), section("x")))
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Sweep(cancelled, 24*time.Hour); !errors.Is(err, context.Canceled) {
		t.Errorf("after its context ended: %v", err)
	}
	if got, err := s.Sweep(t.Context(), 24*time.Hour); err != nil || got.Blobs != 1 {
		t.Errorf("swept %+v, %v", got, err)
	}
}

// heldBucket is a bucket in which some blobs cannot be deleted.
type heldBucket struct {
	driver.Bucket

	held  func(key string) bool
	keys  []string
	tries int
}

func (b *heldBucket) ListPaged(_ context.Context, o *driver.ListOptions) (*driver.ListPage, error) {
	page := new(driver.ListPage)
	last := ""
	for _, key := range b.keys {
		day, _, _ := strings.Cut(key, "/")
		switch {
		case o.Delimiter != "" && day == last:
		case o.Delimiter != "":
			last = day
			page.Objects = append(page.Objects, &driver.ListObject{Key: day + "/", IsDir: true})
		case strings.HasPrefix(key, o.Prefix):
			page.Objects = append(page.Objects, &driver.ListObject{Key: key, Size: 1})
		}
	}
	return page, nil
}

func (b *heldBucket) Delete(_ context.Context, key string) error {
	b.tries++
	if b.held(key) {
		return errors.New("the object is under a legal hold")
	}
	b.keys = slices.DeleteFunc(b.keys, func(k string) bool { return k == key })
	return nil
}

func (b *heldBucket) ErrorCode(error) gcerrors.ErrorCode { return gcerrors.FailedPrecondition }
func (b *heldBucket) As(any) bool                        { return false }
func (b *heldBucket) Close() error                       { return nil }

func (b *heldBucket) store(t *testing.T) *Store {
	t.Helper()
	bucket := blob.NewBucket(b)
	t.Cleanup(func() { _ = bucket.Close() })
	s, err := New(bucket, Config{})
	must(t, err)
	return s
}

// One blob that cannot be deleted keeps no other, of its day or of a later one.
func TestSweepGoesOnAfterABlobThatIsHeld(t *testing.T) {
	t.Parallel()
	sum := strings.Repeat("ab", 32)
	first := "20200101/" + sum
	held := &heldBucket{held: func(key string) bool { return key == first }, keys: []string{first, "20200102/" + sum, "20200103/" + sum}}
	s := held.store(t)
	for _, want := range []int{2, 0} {
		got, err := s.Sweep(t.Context(), 24*time.Hour)
		if got.Blobs != want || err == nil || !strings.Contains(err.Error(), "legal hold") {
			t.Errorf("swept %+v, %v", got, err)
		}
	}
	if !slices.Equal(held.keys, []string{first}) {
		t.Errorf("left %q", held.keys)
	}
}

// A sweep that may delete nothing does not try every blob, and one that meets days under
// a legal hold reaches those after them.
func TestSweepTriesOneBlobOfADayAfterManyFailures(t *testing.T) {
	t.Parallel()
	const days, each = 5, 300
	var keys []string
	for day := range days {
		for n := range each {
			keys = append(keys, fmt.Sprintf("2020010%d/%064x", day+1, n))
		}
	}
	for name, c := range map[string]struct {
		held         string // the last day whose blobs are held
		blobs, tries int
	}{
		"all days":       {"20200105", 0, mostFailures + days - 1},
		"the first days": {"20200103", 2 * each, mostFailures + 2 + 2*each},
		"the first day":  {"20200101", 4 * each, mostFailures + 4*each},
	} {
		held := &heldBucket{held: func(key string) bool { return key[:len(dayLayout)] <= c.held }, keys: slices.Clone(keys)}
		got, err := held.store(t).Sweep(t.Context(), 24*time.Hour)
		if got.Blobs != c.blobs || held.tries != c.tries || err == nil {
			t.Errorf("%s: swept %+v in %d tries, %v; want %d in %d", name, got, held.tries, err, c.blobs, c.tries)
		}
	}
	some := 0 // all but each tenth: never 100 in a row
	held := &heldBucket{held: func(string) bool { some++; return some%10 > 0 }, keys: slices.Clone(keys)}
	if got, err := held.store(t).Sweep(t.Context(), 24*time.Hour); got.Blobs != days*each/10 || held.tries != days*each || err == nil {
		t.Errorf("swept %+v in %d tries, %v", got, held.tries, err)
	}
}

func TestNewRejectsInvalidConfig(t *testing.T) {
	t.Parallel()
	if _, err := New(nil, Config{}); !errors.Is(err, store.ErrInvalid) {
		t.Errorf("no bucket: %v", err)
	}
}

// must fails the test on an error.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
