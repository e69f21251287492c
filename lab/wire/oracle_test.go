package wire

import "testing"

// The oracle has its own test: an oracle that accepts everything would allow everything.
func TestOracle(t *testing.T) {
	t.Parallel()
	const keyed = "POST /t/a HTTP/1.1\r\nHost: test\r\nIdempotency-Key: k\r\n"
	for _, tc := range []struct {
		stream string
		want   defect
		runs   int
	}{
		{keyed + "\r\n", none, 1},
		{keyed + "Content-Length: 2\r\n\r\n{}" + keyed + "\r\n", none, 2},
		{keyed + "Transfer-Encoding: chunked\r\n\r\n2;a=b\r\n{}\r\n0\r\nX: 1\r\n\r\n" + keyed + "\r\n", none, 2},
		{keyed + "Idempotency-Key: k\r\n\r\n", none, 0},
		{"POST /t/a HTTP/1.1\r\nIdempotency-Key: a b\r\n\r\n", none, 0},
		{"POST /t/a HTTP/1.1\r\nIdempotency-Key\x00: k\r\n\r\n", badLine, 0},
		{keyed + "X: 1\r\n 2\r\n\r\n", folded, 0},
		{keyed + "X: 1\nY: 2\r\n\r\n", bareLF, 0},
		{keyed + "X: 1\rY: 2\r\n\r\n", bareCR, 0},
		{keyed + "Content-Length: 1\r\nContent-Length: 2\r\n\r\n{}", lengthsDiffer, 0},
		{keyed + "Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}", equalLength, 0},
		{keyed + "Content-Length: +2\r\n\r\n{}", badLength, 0},
		{keyed + "Content-Length: 3\r\n\r\n{}", shortBody, 0},
		{keyed + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", both, 0},
		{keyed + "Transfer-Encoding: gzip\r\n\r\n", coding, 0},
		{"POST /t/a HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", coding10, 0},
		{keyed + "Transfer-Encoding: chunked\r\n\r\n0x2\r\n{}\r\n0\r\n\r\n", badChunk, 0},
		{keyed + "Transfer-Encoding: chunked\r\n\r\n2\r\n{}X\r\n0\r\n\r\n", badChunk, 0},
		{keyed + "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n", shortBody, 0},
		{keyed + "Transfer-Encoding: chunked\r\n\r\n0\r\n", badTrailer, 0},
		{keyed + "Transfer-Encoding: chunked\r\n\r\n0\r\nno field\r\n\r\n", badTrailer, 0},
		{"POST /t/a  HTTP/1.1\r\n\r\n", requestLine, 0},
		{keyed + "X: 1", shortBody, 0},
	} {
		read, runs := readAll([]byte(tc.stream)), 0
		for _, r := range read {
			if r.runs() {
				runs++
			}
		}
		if got := read[len(read)-1].defect; got != tc.want || runs != tc.runs {
			t.Errorf("%q: defect %q and %d runs, want %q and %d", tc.stream, got, runs, tc.want, tc.runs)
		}
	}
}
