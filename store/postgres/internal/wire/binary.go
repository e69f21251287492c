package wire

import (
	"encoding/binary"
	"errors"

	"github.com/jackc/pgx/v5/pgtype"
)

// This file writes parameters and reads values in the server's binary format. It knows
// only the types that the statements of every request use; these statements cast their
// parameters.

// binaryFormat is the format of every parameter, and of every column.
var binaryFormat = []int16{1}

// AppendInt2 appends n as a smallint.
func AppendInt2(b []byte, n int16) []byte {
	return binary.BigEndian.AppendUint16(b, uint16(n)) //nolint:gosec // its bits
}

// AppendInt8 appends n as a bigint.
func AppendInt8(b []byte, n int64) []byte {
	return binary.BigEndian.AppendUint64(b, uint64(n)) //nolint:gosec // its bits
}

// BinaryBool returns a boolean.
func BinaryBool(v bool) []byte {
	if v {
		return []byte{1}
	}
	return []byte{0}
}

// AppendArray appends the head of an array of n elements. [AppendElement] appends each of
// them.
func AppendArray(b []byte, element uint32, n int) []byte {
	b = binary.BigEndian.AppendUint32(b, 1) // dimensions
	b = binary.BigEndian.AppendUint32(b, 0) // no NULL among the elements
	b = binary.BigEndian.AppendUint32(b, element)
	b = binary.BigEndian.AppendUint32(b, uint32(n)) //nolint:gosec // far less
	return binary.BigEndian.AppendUint32(b, 1)      // the index of the first
}

// AppendLength appends the length of an element, which has to follow.
func AppendLength(b []byte, n int) []byte {
	return binary.BigEndian.AppendUint32(b, uint32(n)) //nolint:gosec // a payload is shorter
}

// AppendElement appends an element.
func AppendElement(b, element []byte) []byte {
	return append(AppendLength(b, len(element)), element...)
}

// The types of the elements of arrays.
const (
	OIDBytea = pgtype.ByteaOID
	OIDText  = pgtype.TextOID
	OIDInt2  = pgtype.Int2OID
	OIDInt8  = pgtype.Int8OID
)

// Row reads the columns of one row of an answer, in order. If a column does not have the
// size of its type, Row reads a zero and sets Err.
type Row struct {
	Columns [][]byte
	Err     error
}

// Bytes reads a column as it is, and nil for NULL.
func (r *Row) Bytes() []byte {
	if len(r.Columns) == 0 {
		r.Err = ErrRow
		return nil
	}
	column := r.Columns[0]
	r.Columns = r.Columns[1:]
	return column
}

func (r *Row) sized(n int) []byte {
	column := r.Bytes()
	if len(column) == n {
		return column
	}
	if column != nil {
		r.Err = ErrRow
	}
	return nil
}

// Smallint reads a smallint, and zero for NULL.
func (r *Row) Smallint() int16 {
	if column := r.sized(2); column != nil {
		return int16(binary.BigEndian.Uint16(column)) //nolint:gosec // its bits
	}
	return 0
}

// Integer reads an integer, and zero for NULL.
func (r *Row) Integer() int {
	if column := r.sized(4); column != nil {
		return int(int32(binary.BigEndian.Uint32(column))) //nolint:gosec // its bits
	}
	return 0
}

// Bigint reads a bigint, and zero for NULL.
func (r *Row) Bigint() int64 {
	if column := r.sized(8); column != nil {
		return int64(binary.BigEndian.Uint64(column)) //nolint:gosec // its bits
	}
	return 0
}

// ErrRow says that a row does not have the columns that the statement asked for.
var ErrRow = errors.New("an answer of the server has other columns than the statement asked for")
