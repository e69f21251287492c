package sqlstore

import (
	"testing"

	"github.com/reprise-go/reprise/core/store"
)

// values are the columns of a row, with the clock in front.
type values []any

func (v values) Scan(to ...any) error {
	for i := range to {
		*to[i].(*any) = v[i] //nolint:forcetypeassert // scan scans into these
	}
	return nil
}

// completedRow is a completed record as drivers return it.
func completedRow(change func(values)) values {
	id, owner, fingerprint := make([]byte, 32), make([]byte, 16), make([]byte, 32)
	owner[0] = 1
	v := values{
		int64(0), int64(1), int64(2), int64(3), int64(500), int64(7), owner, fingerprint,
		int64(100), int64(200), int64(2000), int64(3000), int64(1), int64(0), []byte("answer"),
		id, "orders", "POST /orders", "", int64(1000), int64(1000), int64(6),
	}
	change(v)
	return v
}

func TestRowsOfDriversAreRead(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change  func(values)
		at      int64
		state   store.RecordState
		payload string
	}{
		"completed":                    {func(values) {}, 1000, store.StateCompleted, "answer"},
		"texts as bytes":               {func(v values) { v[16], v[17], v[18] = []byte("orders"), []byte("POST /orders"), []byte("") }, 1000, store.StateCompleted, "answer"},
		"numbers as bytes":             {func(v values) { v[4], v[12] = []byte("500"), true }, 1000, store.StateCompleted, "answer"},
		"the server's clock":           {func(v values) { v[0] = int64(2000) }, 1000, store.StateExpired, ""},
		"replay ended":                 {func(values) {}, 2000, store.StateExpired, ""},
		"payload is gone":              {func(v values) { v[13], v[14], v[21] = int64(1), nil, nil }, 1000, store.StateExpired, ""},
		"empty payload as nil":         {func(v values) { v[14], v[21] = nil, int64(0) }, 1000, store.StateCompleted, ""},
		"empty payload as a nil slice": {func(v values) { v[14], v[21] = []byte(nil), int64(0) }, 1000, store.StateCompleted, ""},
		"another version":              {func(v values) { v[1] = int64(2) }, 1000, store.StateUnreadable, ""},
		"a text for a number":          {func(v values) { v[9] = "soon" }, 1000, store.StateUnreadable, ""},
		"a number for a blob":          {func(v values) { v[6] = int64(1) }, 1000, store.StateUnreadable, ""},
		"a number for a text":          {func(v values) { v[16] = int64(1) }, 1000, store.StateUnreadable, ""},
	} {
		var r row
		if err := r.scan(completedRow(c.change), true, c.at); err != nil || !r.Found {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got := r.view()
		if got.State != c.state || string(got.Payload) != c.payload {
			t.Errorf("%s: %v with %q, want %v with %q", name, got.State, got.Payload, c.state, c.payload)
		}
		if got.State != store.StateUnreadable && (got.Size != len(c.payload) || got.Fence != 500 || got.Label != "orders" || !got.AtMostOnce) {
			t.Errorf("%s: %+v", name, got)
		}
	}
	var none row
	empty := make(values, columnCount+1+detailCount)
	empty[0] = int64(0)
	if err := none.scan(empty, true, 1000); err != nil || none.Found || none.At != 1000 {
		t.Errorf("no row: %+v, %v", none, err)
	}
}

func TestLeaseOutlivesTheValidityOfARow(t *testing.T) {
	t.Parallel()
	r := row{Seen: Seen{Found: true, State: Running, LeaseUntil: 20, ValidUntil: 10, At: 10}}
	if !r.live() || !r.seen() {
		t.Error("a live lease is not seen")
	}
	if r.At = 20; r.live() || r.seen() {
		t.Error("a lease is live at its end")
	}
}
