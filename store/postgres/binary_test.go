package reprisepg

import (
	"bytes"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
)

// TestParametersAreBinary: in the types of their values. Nil is NULL, and an empty
// payload or text is not.
func TestParametersAreBinary(t *testing.T) {
	t.Parallel()
	types := pgtype.NewMap()
	oids, values, err := parameters(types, []any{int16(-2), int64(1) << 60, true, "text", "", []byte{}, []byte(nil), [][]byte{[]byte("one"), {}}})
	if err != nil {
		t.Fatal(err)
	}
	if want := []uint32{
		pgtype.Int2OID, pgtype.Int8OID, pgtype.BoolOID, pgtype.TextOID, pgtype.TextOID, pgtype.ByteaOID, pgtype.ByteaOID, pgtype.ByteaArrayOID,
	}; !slices.Equal(oids, want) {
		t.Errorf("the types are %v, want %v", oids, want)
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
	if _, _, err := parameters(types, []any{struct{}{}}); err == nil {
		t.Error("a value of an unknown type is accepted")
	}
}

// TestRowReadsWhatTheServerWrote: an answer of another shape is an error and not a value.
func TestRowReadsWhatTheServerWrote(t *testing.T) {
	t.Parallel()
	columns := [][]byte{{0xff, 0xfe}, {0xff, 0xff, 0xff, 0xfd}, {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfc}, {}, nil}
	for name, columns := range map[string][][]byte{
		"": columns, "no more column": columns[:4], "no column": nil, "another type": {{1}, {1, 1}, {0, 0, 0, 0, 1}, nil, nil}, "NULL": make([][]byte, 5),
	} {
		r := &binaryRow{types: pgtype.NewMap(), columns: columns, fields: []pgconn.FieldDescription{
			{DataTypeOID: pgtype.Int2OID}, {DataTypeOID: pgtype.Int4OID}, {DataTypeOID: pgtype.Int8OID}, {DataTypeOID: pgtype.ByteaOID}, {DataTypeOID: pgtype.ByteaOID},
		}}
		var (
			small       int16
			number      int
			big         int64
			empty, null []byte
		)
		switch err := r.Scan(&small, &number, &big, &empty, &null); {
		case (err != nil) != (name != ""):
			t.Errorf("%s: %v", name, err)
		case err == nil && (small != -2 || number != -3 || big != -4 || empty == nil || len(empty) > 0 || null != nil):
			t.Errorf("%d, %d, %d, %v, %v", small, number, big, empty, null)
		}
	}
}
