package adaptertest

import (
	"bufio"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
)

func readerOf(bytes string) reader { return reader{bufio.NewReader(strings.NewReader(bytes))} }

func TestClientReadsWholeResponses(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		bytes    string
		bodiless bool
		want     answer
		rest     string
	}{
		"length":        {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nabrest", false, answer{status: 200, body: "ab"}, "rest"},
		"chunks":        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n2\r\nbc\r\n0\r\n\r\nrest", false, answer{status: 200, body: "abc"}, "rest"},
		"trailers":      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nA: 1\r\n\r\n", false, answer{status: 200, trailers: []line{{"A", "1"}}}, ""},
		"until the end": {"HTTP/1.0 200 OK\r\n\r\nall", false, answer{status: 200, body: "all"}, ""},
		"no content":    {"HTTP/1.1 204 No Content\r\n\r\nrest", false, answer{status: 204}, "rest"},
		"not modified":  {"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\nrest", false, answer{status: 304}, "rest"},
		"HEAD":          {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nrest", true, answer{status: 200}, "rest"},
		"early hints": {
			"HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\nHTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n", false,
			answer{status: 201, early: []answer{{status: 103, fields: []line{{"Link", "a"}}}}},
			"",
		},
	} {
		r := readerOf(row.bytes)
		got, err := r.answer(row.bodiless)
		rest, _ := io.ReadAll(r)
		if err != nil || got.status != row.want.status || got.body != row.want.body || string(rest) != row.rest {
			t.Errorf("%s: %v, %v, and %q is left; want %v and %q", name, got, err, rest, row.want, row.rest)
		}
		if !slices.Equal(got.trailers, row.want.trailers) || len(got.early) != len(row.want.early) {
			t.Errorf("%s: trailers %q and %d early answers", name, got.trailers, len(got.early))
		}
	}
}

func TestClientRefusesWrongFraming(t *testing.T) {
	t.Parallel()
	for name, bytes := range map[string]string{
		"nothing":           "",
		"no status line":    "HTTP/2 200 OK\r\n\r\n",
		"short status":      "HTTP/1.1 20 OK\r\n\r\n",
		"bare LF":           "HTTP/1.1 200 OK\n\n",
		"CR in a value":     "HTTP/1.1 200 OK\r\nA: 1\rB: 2\r\n\r\n",
		"space in a name":   "HTTP/1.1 200 OK\r\nA : 1\r\n\r\n",
		"no colon":          "HTTP/1.1 200 OK\r\nA\r\n\r\n",
		"two lengths":       "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nContent-Length: 0\r\n\r\n",
		"length and chunks": "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"length of a 204":   "HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n",
		"negative length":   "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
		"short body":        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\na",
		"other coding":      "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
		"no chunk size":     "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
		"long chunk":        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n0\r\n\r\n",
		"no last chunk":     "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n",
		"cut trailers":      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nA: 1\r\n",
	} {
		if got, err := readerOf(bytes).answer(false); err == nil {
			t.Errorf("%s: read %v", name, got)
		} else if name != "nothing" && errors.Is(err, io.EOF) {
			t.Errorf("%s: %v, which is the end of a connection between two answers", name, err)
		}
	}
}
