package reprisefasthttp

import (
	"errors"
	"io"
)

// mostDrained is how much of an unwanted body is read so that its connection can be used
// again.
const mostDrained = 256 << 10

// drain reads the rest of an unwanted request body, and reports whether the connection
// can be used for another request (R47). If it cannot, the caller closes it. A body that
// is declared to be longer than 256 KiB is not read.
func drain(body io.Reader, declared int64) bool {
	if declared > mostDrained {
		return false
	}
	n, err := io.CopyN(io.Discard, body, mostDrained+1)
	return n <= mostDrained && errors.Is(err, io.EOF)
}
