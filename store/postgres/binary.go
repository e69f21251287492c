package reprisepg

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgtype"
)

// This file has the binary format of the server, for the statements of every request,
// which cast their parameters.

// binaryFormat is the format of every parameter, and of every column.
var binaryFormat = []int16{pgtype.BinaryFormatCode}

// parameters returns args in the types that pgx has for them. Only a nil []byte is NULL.
func parameters(types *pgtype.Map, args []any) (values [][]byte, err error) {
	values = make([][]byte, len(args))
	for i, arg := range args {
		if b, ok := arg.([]byte); ok {
			values[i] = b
			continue
		}
		typ, ok := types.TypeForValue(arg)
		if !ok {
			return nil, fmt.Errorf("parameter %d has the type %T", i+1, arg)
		}
		if values[i], err = types.Encode(typ.OID, pgtype.BinaryFormatCode, arg, []byte{}); err != nil {
			return nil, fmt.Errorf("parameter %d: %w", i+1, err)
		}
	}
	return values, nil
}

// binaryRow reads the columns of one row of an answer, in order. If a column does not
// have the size of its type, it reads a zero and sets err.
type binaryRow struct {
	columns [][]byte
	err     error
}

// bytes reads a column as it is, and nil for NULL.
func (r *binaryRow) bytes() []byte {
	if len(r.columns) == 0 {
		r.err = errRow
		return nil
	}
	column := r.columns[0]
	r.columns = r.columns[1:]
	return column
}

func (r *binaryRow) sized(n int) []byte {
	column := r.bytes()
	if len(column) == n {
		return column
	}
	if column != nil {
		r.err = errRow
	}
	return nil
}

// smallint reads a smallint, and zero for NULL.
func (r *binaryRow) smallint() int16 {
	if column := r.sized(2); column != nil {
		return int16(binary.BigEndian.Uint16(column)) //nolint:gosec // its bits
	}
	return 0
}

// integer reads an integer, and zero for NULL.
func (r *binaryRow) integer() int {
	if column := r.sized(4); column != nil {
		return int(int32(binary.BigEndian.Uint32(column))) //nolint:gosec // its bits
	}
	return 0
}

// bigint reads a bigint, and zero for NULL.
func (r *binaryRow) bigint() int64 {
	if column := r.sized(8); column != nil {
		return int64(binary.BigEndian.Uint64(column)) //nolint:gosec // its bits
	}
	return 0
}

// errRow says that a row does not have the columns that the statement asked for.
var errRow = errors.New("an answer of the server has other columns than the statement asked for")
