package reprisepg

import (
	"encoding/binary"
	"errors"
	"time"

	"github.com/jackc/pgx/v5/pgtype"
)

// This file writes parameters in the server's binary format, and reads values of it. It
// knows the few types that the statements of every request use, which cast their
// parameters to them.

// binaryFormat is the format of every parameter, and of every column.
var binaryFormat = []int16{1}

// The epoch of the server's timestamps, and the size of an interval.
const (
	pgEpoch      = 946_684_800_000_000 // 2000-01-01 in µs of Unix time
	intervalSize = 16
)

// appendInterval appends d as an interval: microseconds, days and months.
func appendInterval(b []byte, d time.Duration) []byte {
	b = binary.BigEndian.AppendUint64(b, uint64(d.Microseconds())) //nolint:gosec // its bits
	return binary.BigEndian.AppendUint64(b, 0)
}

// appendInt4 appends n as an integer.
func appendInt4(b []byte, n int) []byte {
	return binary.BigEndian.AppendUint32(b, uint32(n)) //nolint:gosec // attempts are few
}

// appendTimestamp appends an instant in microseconds since 1970 as a timestamptz.
func appendTimestamp(b []byte, at int64) []byte { return appendInt8(b, at-pgEpoch) }

// appendInt8 appends n as a bigint.
func appendInt8(b []byte, n int64) []byte {
	return binary.BigEndian.AppendUint64(b, uint64(n)) //nolint:gosec // its bits
}

// binaryBool returns a boolean.
func binaryBool(v bool) []byte {
	if v {
		return []byte{1}
	}
	return []byte{0}
}

// appendArray appends the head of an array of n elements, each of which follows by
// appendElement.
func appendArray(b []byte, element uint32, n int) []byte {
	b = binary.BigEndian.AppendUint32(b, 1) // dimensions
	b = binary.BigEndian.AppendUint32(b, 0) // no NULL among the elements
	b = binary.BigEndian.AppendUint32(b, element)
	b = binary.BigEndian.AppendUint32(b, uint32(n)) //nolint:gosec // far less
	return binary.BigEndian.AppendUint32(b, 1)      // the index of the first
}

// appendLength appends the length of an element, which has to follow.
func appendLength(b []byte, n int) []byte {
	return binary.BigEndian.AppendUint32(b, uint32(n)) //nolint:gosec // a payload is shorter
}

// appendElement appends an element.
func appendElement(b, element []byte) []byte {
	return append(appendLength(b, len(element)), element...)
}

// The types of the elements of arrays.
const (
	oidBytea    = pgtype.ByteaOID
	oidText     = pgtype.TextOID
	oidInt8     = pgtype.Int8OID
	oidInterval = pgtype.IntervalOID
)

// row reads the columns of one row of an answer, in order. After the first column that
// does not have the size of its type it reads zeros, and keeps an error.
type row struct {
	columns [][]byte
	err     error
}

func (r *row) bytes() []byte {
	if len(r.columns) == 0 {
		r.err = errRow
		return nil
	}
	column := r.columns[0]
	r.columns = r.columns[1:]
	return column
}

func (r *row) sized(n int) []byte {
	column := r.bytes()
	if len(column) == n {
		return column
	}
	if column != nil {
		r.err = errRow
	}
	return nil
}

// boolean reads a boolean, and false for NULL.
func (r *row) boolean() bool {
	column := r.sized(1)
	return len(column) == 1 && column[0] != 0
}

// smallint reads a smallint, and zero for NULL.
func (r *row) smallint() int16 {
	if column := r.sized(2); column != nil {
		return int16(binary.BigEndian.Uint16(column)) //nolint:gosec // its bits
	}
	return 0
}

// integer reads an integer, and zero for NULL.
func (r *row) integer() int {
	if column := r.sized(4); column != nil {
		return int(int32(binary.BigEndian.Uint32(column))) //nolint:gosec // its bits
	}
	return 0
}

// bigint reads a bigint, and zero for NULL.
func (r *row) bigint() int64 {
	if column := r.sized(8); column != nil {
		return int64(binary.BigEndian.Uint64(column)) //nolint:gosec // its bits
	}
	return 0
}

// timestamp reads a timestamptz in microseconds since 1970, and zero for NULL.
func (r *row) timestamp() int64 {
	if column := r.sized(8); column != nil {
		return int64(binary.BigEndian.Uint64(column)) + pgEpoch //nolint:gosec // its bits
	}
	return 0
}

var errRow = errors.New("an answer of the server has other columns than the statement asked for")
