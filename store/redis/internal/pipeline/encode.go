package pipeline

import (
	"encoding"
	"strconv"
)

// AppendCommand appends a command in the protocol of Redis, as go-redis writes it. It
// reports false if it does not know the type of an argument.
func AppendCommand(b []byte, args []any) (out []byte, ok bool) {
	b = appendLength(b, '*', len(args))
	for _, arg := range args {
		switch arg := arg.(type) {
		case string:
			b = appendBulk(b, arg)
		case *string:
			b = appendBulk(b, *arg)
		case int:
			b = appendInt(b, int64(arg))
		case int64:
			b = appendInt(b, arg)
		case *int64:
			b = appendInt(b, *arg)
		case encoding.BinaryMarshaler:
			value, err := arg.MarshalBinary()
			if err != nil {
				return b, false
			}
			b = appendBulk(b, value)
		default:
			return b, false
		}
	}
	return b, true
}

func appendBulk[T string | []byte](b []byte, value T) []byte {
	b = append(appendLength(b, '$', len(value)), value...)
	return append(b, '\r', '\n')
}

func appendInt(b []byte, n int64) []byte {
	var digits [20]byte
	return appendBulk(b, strconv.AppendInt(digits[:0], n, 10))
}

func appendLength(b []byte, kind byte, n int) []byte {
	b = strconv.AppendInt(append(b, kind), int64(n), 10)
	return append(b, '\r', '\n')
}
