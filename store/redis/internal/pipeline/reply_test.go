package pipeline

import (
	"bufio"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/reprise-go/reprise/store/redis/internal/fakeserver"
)

// Replies come in pieces, in both versions of the protocol, with things between them that
// are no replies.
func TestRepliesAreRead(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]Reply{
		"$3\r\nabc\r\n":                       {Kind: String, Text: "abc"},
		"$0\r\n\r\n":                          {Kind: String},
		"$-1\r\n":                             {Kind: Nil},
		"*-1\r\n":                             {Kind: Nil},
		"_\r\n":                               {Kind: Nil},
		":-12\r\n":                            {Kind: Number, Number: -12},
		"+OK\r\n":                             {Kind: Status},
		"-ERR no\r\n":                         {Kind: Failure, Text: "ERR no"},
		"!6\r\nERR no\r\n":                    {Kind: Failure, Text: "ERR no"},
		"*2\r\n:1\r\n$1\r\na\r\n":             {Kind: Other},
		"*2\r\n$-1\r\n=5\r\ntxt:a\r\n":        {Kind: Other},
		"%1\r\n+a\r\n:1\r\n":                  {Kind: Other},
		">2\r\n+message\r\n$1\r\nx\r\n:7\r\n": {Kind: Number, Number: 7},
		"|1\r\n+ttl\r\n:3\r\n$1\r\nx\r\n":     {Kind: String, Text: "x"},
		fakeserver.Bulk(long(70_000)):         {Kind: String, Text: long(70_000)},
	} {
		r := bufio.NewReaderSize(oneByte{strings.NewReader(in + ":99\r\n")}, 64)
		got, err := readReply(r)
		if err != nil || got != want {
			t.Errorf("%.40q reads %+.60v, %v", in, got, err)
		}
		if next, err := readReply(r); err != nil || next.Number != 99 {
			t.Errorf("after %.40q comes %+.60v, %v", in, next, err)
		}
	}
	for _, in := range []string{
		"\r\n", "x\r\n", "$x\r\n", "$-2\r\n", "$999999999999\r\n", "$3\r\nabcd\r\n", ":a\r\n", ":1\n",
		"*1\r\n$-2\r\n", "*1\r\n$999999999999\r\n", "*1\r\n$1\r\nab\r\n", strings.Repeat("+", 100) + "\r\n", strings.Repeat("*1\r\n", 20),
	} {
		if got, err := readReply(bufio.NewReaderSize(strings.NewReader(in), 64)); !errors.Is(err, errProtocol) {
			t.Errorf("%.40q reads %+v, %v", in, got, err)
		}
	}
	for _, in := range []string{"$5\r\nab", "*1\r\n$5\r\nab"} {
		if _, err := readReply(bufio.NewReader(strings.NewReader(in))); !errors.Is(err, io.EOF) {
			t.Errorf("%q, which is cut: %v", in, err)
		}
	}
}

// A string that comes in pieces ends where it ends, also when the next reply is there.
func TestLongReplyEndsWhereItEnds(t *testing.T) {
	t.Parallel()
	in := bufio.NewReaderSize(strings.NewReader(fakeserver.Bulk(long(100))+":1\r\n:2\r\n"), 64)
	if r, err := readReply(in); err != nil || r.Text != long(100) {
		t.Errorf("reads %d bytes, %v", len(r.Text), err)
	}
	var next []int64
	for range 2 {
		r, err := readReply(in)
		if err != nil {
			t.Fatal(err)
		}
		next = append(next, r.Number)
	}
	if !slices.Equal(next, []int64{1, 2}) {
		t.Errorf("then %v", next)
	}
}

// oneByte reads one byte at a time.
type oneByte struct{ r io.Reader }

func (o oneByte) Read(p []byte) (int, error) { return o.r.Read(p[:min(len(p), 1)]) }

func FuzzReplies(f *testing.F) {
	for _, in := range []string{"$3\r\nabc\r\n", "*2\r\n:1\r\n_\r\n", "|1\r\n+a\r\n:1\r\n-ERR\r\n", "|1\r\n", "%1\r\n+a\r\n", "%x\r\n", "!2\r\n000", "$3\r\nabc", "*1\r\n$3\r\nabc\r\n"} {
		f.Add([]byte(in))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		r := bufio.NewReaderSize(strings.NewReader(string(in)), 64)
		for range len(in) + 1 {
			if _, err := readReply(r); err != nil {
				return
			}
		}
		t.Error("replies of no bytes")
	})
}
