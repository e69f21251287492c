package table

import (
	"math"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/reprise-go/reprise/store/internal/record"
	"github.com/reprise-go/reprise/store/postgres/internal/wire"
)

// TestInstantScansInfinityAndNull: infinity lies at the ends of time, and NULL is zero.
func TestInstantScansInfinityAndNull(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		from pgtype.Timestamptz
		want instant
	}{
		{pgtype.Timestamptz{}, 0},
		{pgtype.Timestamptz{Valid: true, Time: time.UnixMicro(7)}, 7},
		{pgtype.Timestamptz{Valid: true, InfinityModifier: pgtype.Infinity}, math.MaxInt64},
		{pgtype.Timestamptz{Valid: true, InfinityModifier: pgtype.NegativeInfinity}, math.MinInt64},
	} {
		i := instant(1)
		if err := i.ScanTimestamptz(test.from); err != nil || i != test.want {
			t.Errorf("%+v is %d, %v; want %d", test.from, i, err, test.want)
		}
	}
}

// TestSeenReadsARecordOrNone: a row whose version is NULL is no record, or one that the
// statement wrote, and an answer with too few columns is an error.
func TestSeenReadsARecordOrNone(t *testing.T) {
	t.Parallel()
	at := wire.AppendTimestamp(nil, 7)
	for form, test := range map[string]struct {
		clocks [][]byte // in front of the record
		read   func(*Seen, *wire.Row)
	}{
		"of a claim": {[][]byte{at}, (*Seen).Read},
	} {
		columns := len(test.clocks) + 10
		for name, answer := range map[string]struct {
			columns       int
			found, failed bool
		}{
			"none": {columns, false, false}, "a record": {columns, true, false},
			"too few": {len(test.clocks), false, true}, "too few of a record": {columns - 1, true, true},
		} {
			r := &wire.Row{Columns: make([][]byte, columns)}
			copy(r.Columns, test.clocks)
			if answer.found {
				r.Columns[len(test.clocks)] = []byte{0, record.Version}
			}
			r.Columns[len(test.clocks)+5] = wire.AppendInt8(nil, 40)
			r.Columns = r.Columns[:answer.columns]
			var got Seen
			test.read(&got, r)
			whole := answer.columns > len(test.clocks)+5
			if got.Found != answer.found || (r.Err != nil) != answer.failed || got.At != 7 || got.Clock != 7 || (got.Fence == 40) != whole {
				t.Errorf("%s, %s: %+v, %v", form, name, got, r.Err)
			}
		}
	}
}
