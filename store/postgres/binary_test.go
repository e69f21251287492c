package reprisepg

import (
	"bytes"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5/pgtype"
)

// TestParametersAreBinary: each has the size of the type that the casts of a statement
// give it. Nil is NULL, and an empty payload or text is not.
func TestParametersAreBinary(t *testing.T) {
	t.Parallel()
	types := pgtype.NewMap()
	values, err := parameters(types, []any{int16(-2), int64(1) << 60, true, "text", "", []byte{}, []byte(nil), [][]byte{[]byte("one"), {}}})
	if err != nil {
		t.Fatal(err)
	}
	want := [][]byte{{0xff, 0xfe}, {0x10, 0, 0, 0, 0, 0, 0, 0}, {1}, []byte("text"), {}, {}, nil}
	for i, w := range want {
		if !bytes.Equal(values[i], w) || (values[i] == nil) != (w == nil) {
			t.Errorf("parameter %d is %v, want %v", i+1, values[i], w)
		}
	}
	var ids [][]byte
	if err := types.Scan(pgtype.ByteaArrayOID, pgtype.BinaryFormatCode, values[7], &ids); err != nil || len(ids) != 2 || string(ids[0]) != "one" || ids[1] == nil {
		t.Errorf("an array is %q, %v", ids, err)
	}
	if _, err := parameters(types, []any{struct{}{}}); err == nil {
		t.Error("a value of an unknown type is accepted")
	}
}

// TestRowReadsWhatTheServerWrote: NULL is zero, and an answer of another shape is an
// error and not a value.
func TestRowReadsWhatTheServerWrote(t *testing.T) {
	t.Parallel()
	read := func(r *binaryRow) []int64 {
		return []int64{int64(r.smallint()), int64(r.integer()), r.bigint(), int64(len(r.bytes()))}
	}
	columns := [][]byte{{0xff, 0xfe}, {0xff, 0xff, 0xff, 0xfd}, {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfc}, []byte("rest")}
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
		r := &binaryRow{columns: test.columns}
		if got := [4]int64(read(r)); got != test.want || errors.Is(r.err, errRow) != test.failed {
			t.Errorf("%s: %v, %v; want %v, and an error: %t", name, got, r.err, test.want, test.failed)
		}
	}
	r := binaryRow{columns: [][]byte{{}}}
	if b := r.bytes(); b == nil || !bytes.Equal(b, []byte{}) {
		t.Error("the empty payload reads as NULL")
	}
}
