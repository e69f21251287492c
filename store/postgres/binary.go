package reprisepg

import (
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
)

// This file has the binary format of the server, which no setting of a session changes.

// binaryFormat is the format of every parameter, and of every column.
var binaryFormat = []int16{pgtype.BinaryFormatCode}

// parameters returns args in the types that pgx has for them. Only a nil []byte is NULL.
func parameters(types *pgtype.Map, args []any) (oids []uint32, values [][]byte, err error) {
	oids, values = make([]uint32, len(args)), make([][]byte, len(args))
	for i, arg := range args {
		if b, ok := arg.([]byte); ok {
			oids[i], values[i] = pgtype.ByteaOID, b
			continue
		}
		typ, ok := types.TypeForValue(arg)
		if !ok {
			return nil, nil, fmt.Errorf("parameter %d has the type %T", i+1, arg)
		}
		oids[i] = typ.OID
		if values[i], err = types.Encode(typ.OID, pgtype.BinaryFormatCode, arg, []byte{}); err != nil {
			return nil, nil, fmt.Errorf("parameter %d: %w", i+1, err)
		}
	}
	return oids, values, nil
}

// binaryRow is a row of an answer.
type binaryRow struct {
	types   *pgtype.Map
	fields  []pgconn.FieldDescription
	columns [][]byte
}

// Scan implements [sqlstore.Row]. It copies what it returns. A nil skips a column.
func (r *binaryRow) Scan(to ...any) error {
	if len(to) != len(r.columns) || len(to) != len(r.fields) {
		return errRow
	}
	for i, column := range r.columns {
		if err := r.types.Scan(r.fields[i].DataTypeOID, pgtype.BinaryFormatCode, column, to[i]); err != nil {
			return fmt.Errorf("column %d: %w", i+1, err)
		}
	}
	return nil
}

// errRow says that a row does not have the columns that the statement asked for.
var errRow = errors.New("an answer of the server has other columns than the statement asked for")
