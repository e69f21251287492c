package wire

import (
	"bytes"
	"errors"
	"testing"

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
	var flag int16
	read(pgtype.Int2OID, AppendInt2(nil, -2), &flag)
	var fence int64
	read(pgtype.Int8OID, AppendInt8(nil, 1<<60), &fence)
	var yes, no bool
	read(pgtype.BoolOID, BinaryBool(true), &yes)
	read(pgtype.BoolOID, BinaryBool(false), &no)
	if flag != -2 || fence != 1<<60 || !yes || no {
		t.Errorf("the numbers are %d and %d, and the booleans %t and %t", flag, fence, yes, no)
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
	read := func(r *Row) []int64 {
		return []int64{int64(r.Smallint()), int64(r.Integer()), r.Bigint(), int64(len(r.Bytes()))}
	}
	columns := [][]byte{{0xff, 0xfe}, {0xff, 0xff, 0xff, 0xfd}, AppendInt8(nil, -4), []byte("rest")}
	for name, test := range map[string]struct {
		columns [][]byte
		want    [4]int64
		failed  bool
	}{
		"values":         {columns, [4]int64{-2, -3, -4, 4}, false},
		"NULL":           {make([][]byte, 4), [4]int64{}, false},
		"no more column": {columns[:3], [4]int64{-2, -3, -4, 0}, true},
		"no column":      {nil, [4]int64{}, true},
		"another type":   {[][]byte{{1}, {0, 0, 0, 0, 1}, {1, 1}, nil}, [4]int64{}, true},
	} {
		r := &Row{Columns: test.columns}
		if got := [4]int64(read(r)); got != test.want || errors.Is(r.Err, ErrRow) != test.failed {
			t.Errorf("%s: %v, %v; want %v, and an error: %t", name, got, r.Err, test.want, test.failed)
		}
	}
	r := Row{Columns: [][]byte{{}}}
	if b := r.Bytes(); b == nil || !bytes.Equal(b, []byte{}) {
		t.Error("the empty payload reads as NULL")
	}
}
