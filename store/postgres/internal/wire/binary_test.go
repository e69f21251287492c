package wire

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgtype"
)

// TestParametersHaveTheServersFormat: pgx reads the same values back.
func TestParametersHaveTheServersFormat(t *testing.T) {
	t.Parallel()
	types := pgtype.NewMap()
	read := func(oid uint32, b []byte, to any) {
		t.Helper()
		if err := types.Scan(oid, pgtype.BinaryFormatCode, b, to); err != nil {
			t.Fatal(err)
		}
	}
	var interval pgtype.Interval
	read(pgtype.IntervalOID, AppendInterval(nil, 90*time.Minute+time.Microsecond), &interval)
	if interval != (pgtype.Interval{Microseconds: 5_400_000_001, Valid: true}) {
		t.Errorf("an interval is %+v", interval)
	}
	var at time.Time
	want := time.Date(2026, 11, 22, 8, 30, 0, 1000, time.UTC)
	read(pgtype.TimestamptzOID, AppendTimestamp(nil, want.UnixMicro()), &at)
	if !at.Equal(want) {
		t.Errorf("an instant is %v, want %v", at, want)
	}
	var attempts int32
	read(pgtype.Int4OID, AppendInt4(nil, 70_000), &attempts)
	var fence int64
	read(pgtype.Int8OID, AppendInt8(nil, want.UnixMicro()), &fence)
	var yes, no bool
	read(pgtype.BoolOID, BinaryBool(true), &yes)
	read(pgtype.BoolOID, BinaryBool(false), &no)
	if attempts != 70_000 || fence != want.UnixMicro() || !yes || no {
		t.Errorf("the numbers are %d and %d, and the booleans %t and %t", attempts, fence, yes, no)
	}
	var ids [][]byte
	array := AppendElement(AppendElement(AppendArray(nil, OIDBytea, 2), []byte("one")), nil)
	read(pgtype.ByteaArrayOID, array, &ids)
	if len(ids) != 2 || string(ids[0]) != "one" || ids[1] == nil || len(ids[1]) != 0 {
		t.Errorf("an array is %q", ids)
	}
}

// TestRowReadsWhatTheServerWrote: NULL is zero, and an answer of another shape is an
// error and not a value.
func TestRowReadsWhatTheServerWrote(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 22, 8, 30, 0, 0, time.UTC).UnixMicro()
	read := func(r *Row) []int64 {
		n := int64(0)
		if r.Boolean() {
			n = 1
		}
		return []int64{n, int64(r.Smallint()), int64(r.Integer()), r.Bigint(), r.Timestamp(), int64(len(r.Bytes()))}
	}
	columns := [][]byte{{1}, {0xff, 0xfe}, AppendInt4(nil, -3), AppendInt8(nil, -4), AppendTimestamp(nil, at), []byte("rest")}
	for name, test := range map[string]struct {
		columns [][]byte
		want    [6]int64
		failed  bool
	}{
		"values":         {columns, [6]int64{1, -2, -3, -4, at, 4}, false},
		"NULL":           {make([][]byte, 6), [6]int64{}, false},
		"false":          {[][]byte{{0}, nil, nil, nil, nil, nil}, [6]int64{}, false},
		"no more column": {columns[:5], [6]int64{1, -2, -3, -4, at, 0}, true},
		"no column":      {nil, [6]int64{}, true},
		"another type": {
			[][]byte{{1, 1}, {1}, {0, 0, 0, 0, 1}, AppendInt4(nil, 1), AppendInt4(nil, 1), nil},
			[6]int64{},
			true,
		},
	} {
		r := &Row{Columns: test.columns}
		if got := [6]int64(read(r)); got != test.want || errors.Is(r.Err, ErrRow) != test.failed {
			t.Errorf("%s: %v, %v; want %v, and an error: %t", name, got, r.Err, test.want, test.failed)
		}
	}
	r := Row{Columns: [][]byte{{}}}
	if b := r.Bytes(); b == nil || !bytes.Equal(b, []byte{}) {
		t.Error("the empty payload reads as NULL")
	}
}
