package repriseetcd

import (
	"errors"
	"testing"
	"time"

	"github.com/reprise-go/reprise/core/store"
)

// sample is a record with every field set.
func sample() record {
	return record{
		state: unknown, atMostOnce: true, owner: store.Owner{1}, fingerprint: store.Fingerprint{2}, fence: 7, attempt: 3,
		retention: time.Hour, horizon: time.Minute, claimedAt: time.Unix(5, 6), completedAt: time.Unix(7, 8), spare: time.Second,
		size: 9, parts: 1, set: 1<<63 + 1, label: "payments", description: "POST /payments", reason: "the bank timed out",
	}
}

const thePayload = "created"

// withPayload is a record that thePayload follows.
func withPayload() record {
	rec := sample()
	rec.state, rec.reason, rec.parts, rec.whole, rec.size = completed, "", 0, true, len(thePayload)
	return rec
}

func TestRecordIsReadAsItWasWritten(t *testing.T) {
	t.Parallel()
	want := sample()
	got, err := decode([]byte(want.encode()), 42)
	if err != nil || got != want {
		t.Errorf("decode gave %+v, %v, want %+v", got, err, want)
	}
	want.fence = 0
	if got, err = decode([]byte(want.encode()), 42); err != nil || got.fence != 42 {
		t.Errorf("fence %d, %v, want the revision that wrote the record", got.fence, err)
	}
	want = withPayload()
	if got, err = decode([]byte(want.encode()+thePayload), 42); err != nil || got != want {
		t.Errorf("decode gave %+v, %v, want %+v", got, err, want)
	}
}

func TestRecordThatWasCutIsRefused(t *testing.T) {
	t.Parallel()
	alone, both := sample(), withPayload()
	for _, whole := range []string{alone.encode(), both.encode() + thePayload} {
		for n := range len(whole) {
			if got, err := decode([]byte(whole[:n]), 1); err == nil {
				t.Errorf("the first %d of %d bytes are %+v", n, len(whole), got)
			}
		}
		if _, err := decode([]byte(whole+"x"), 1); err == nil {
			t.Error("a record with a byte too many was read")
		}
	}
}

func TestSizeOfADamagedRecordIsNotTrusted(t *testing.T) {
	t.Parallel()
	if _, err := new(Store).join(t.Context(), store.ID{}, &found{record: record{size: 1 << 62}}); !errors.Is(err, store.ErrCorrupt) {
		t.Errorf("%v, want ErrCorrupt", err)
	}
}

// FuzzDecode finds no value that crashes decode, or that is read as another.
func FuzzDecode(f *testing.F) {
	alone, both := sample(), withPayload()
	f.Add([]byte(alone.encode()))
	f.Add([]byte(both.encode() + thePayload))
	f.Fuzz(func(t *testing.T, value []byte) {
		got, err := decode(value, 1)
		if err != nil {
			return
		}
		payload := ""
		if got.whole {
			payload = string(value[len(value)-got.size:])
		}
		again, err := decode([]byte(got.encode()+payload), 1)
		if err != nil || again != got {
			t.Errorf("%+v was read again as %+v, %v", got, again, err)
		}
	})
}
