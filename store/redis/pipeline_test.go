package repriseredis

import (
	"bufio"
	"context"
	"errors"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	reprise "github.com/reprise-go/reprise/core"
)

// newPipelined returns a store over f whose pipeline is connected, and a count of the
// calls that it sends. It releases to get there, which f has to answer.
func newPipelined(t *testing.T, f *fake, c Config) (*Store, *atomic.Int64) {
	t.Helper()
	var pipelined atomic.Int64
	c.Hook = func(context.Context, Pipelined) { pipelined.Add(1) }
	s, err := New(newClient(t, f), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	for deadline := time.Now().Add(10 * time.Second); pipelined.Load() == 0; {
		if err := s.Release(t.Context(), reprise.ID{}, reprise.Owner{1}); err != nil || time.Now().After(deadline) {
			t.Fatalf("no call was pipelined: %v", err)
		}
	}
	return s, &pipelined
}

// What failed in a pipeline is repeated by the client, which knows about redirects, other
// servers and scripts.
func TestARepetitionGoesThroughTheClient(t *testing.T) {
	t.Parallel()
	for _, failure := range []string{
		"-LOADING Redis is loading the dataset in memory\r\n",
		"-NOSCRIPT No matching script. Please use EVAL.\r\n",
		"-READONLY You can't write against a read only replica.\r\n",
		cut,
		"what is this?\r\n",
	} {
		var armed atomic.Bool
		f := newFake(t, func(_, _ int, _ []string) string {
			if armed.CompareAndSwap(true, false) {
				return failure
			}
			return bulk("W")
		})
		s, pipelined := newPipelined(t, f, Config{})
		before := pipelined.Load()
		armed.Store(true)
		if err := s.Release(t.Context(), reprise.ID{}, reprise.Owner{1}); err != nil {
			t.Errorf("%q: %v", failure, err)
		}
		log := strings.Split(f.seen(), ", ")
		first, _, _ := strings.Cut(log[len(log)-2], " ")
		second, _, _ := strings.Cut(log[len(log)-1], " ")
		if n := pipelined.Load() - before; n != 1 || first == second {
			t.Errorf("%q: %d calls were pipelined, want the first; sent %q", failure, n, log[len(log)-2:])
		}
	}
}

// Replies come in pieces, in both versions of the protocol, and with things between them
// that nobody asked for.
func TestRepliesAreRead(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]reply{
		"$3\r\nabc\r\n":                       {kind: replyText, text: "abc"},
		"$0\r\n\r\n":                          {kind: replyText},
		"$-1\r\n":                             {kind: replyNil},
		"*-1\r\n":                             {kind: replyNil},
		"_\r\n":                               {kind: replyNil},
		":-12\r\n":                            {kind: replyNumber, number: -12},
		"+OK\r\n":                             {kind: replyText, text: "OK"},
		"-ERR no\r\n":                         {kind: replyError, text: "ERR no"},
		"!6\r\nERR no\r\n":                    {kind: replyError, text: "ERR no"},
		"*2\r\n:1\r\n$1\r\na\r\n":             {kind: replyOther},
		"%1\r\n+a\r\n:1\r\n":                  {kind: replyOther},
		">2\r\n+message\r\n$1\r\nx\r\n:7\r\n": {kind: replyNumber, number: 7},
		"|1\r\n+ttl\r\n:3\r\n$1\r\nx\r\n":     {kind: replyText, text: "x"},
		"$70000\r\n" + strings.Repeat("y", 70_000) + "\r\n": {kind: replyText, text: strings.Repeat("y", 70_000)},
	} {
		r := bufio.NewReaderSize(iotestOneByte{strings.NewReader(in + ":99\r\n")}, 64)
		got, err := readReply(r)
		if err != nil || got != want {
			t.Errorf("%.40q reads %+.60v, %v", in, got, err)
		}
		if next, err := readReply(r); err != nil || next.number != 99 {
			t.Errorf("after %.40q comes %+.60v, %v", in, next, err)
		}
	}
	for _, in := range []string{"\r\n", "x\r\n", "$x\r\n", "$-2\r\n", "$999999999999\r\n", "$3\r\nabcd\r\n", ":a\r\n", ":1\n", strings.Repeat("+", 100) + "\r\n", strings.Repeat("*1\r\n", 20)} {
		if got, err := readReply(bufio.NewReaderSize(strings.NewReader(in), 64)); !errors.Is(err, errProtocol) {
			t.Errorf("%.40q reads %+v, %v", in, got, err)
		}
	}
	if _, err := readReply(bufio.NewReader(strings.NewReader("$5\r\nab"))); !errors.Is(err, io.EOF) {
		t.Errorf("a reply that is cut: %v", err)
	}
}

// iotestOneByte reads one byte at a time.
type iotestOneByte struct{ r io.Reader }

func (o iotestOneByte) Read(p []byte) (int, error) { return o.r.Read(p[:min(len(p), 1)]) }

func FuzzReplies(f *testing.F) {
	for _, in := range []string{"$3\r\nabc\r\n", "*2\r\n:1\r\n_\r\n", "|1\r\n+a\r\n:1\r\n-ERR\r\n"} {
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

// The arguments of a command are written as go-redis writes them.
func TestArgumentsAreWritten(t *testing.T) {
	t.Parallel()
	text, number, bytes := "k", int64(-7), blob("b\r\n")
	got, ok := appendCommand(nil, []any{"set", &text, &bytes, 3, int64(4), &number})
	if want := "*6\r\n$3\r\nset\r\n$1\r\nk\r\n$3\r\nb\r\n\r\n$1\r\n3\r\n$1\r\n4\r\n$2\r\n-7\r\n"; !ok || string(got) != want {
		t.Errorf("wrote %q, %v; want %q", got, ok, want)
	}
	if _, ok := appendCommand(nil, []any{1.5}); ok {
		t.Error("wrote an argument of a type that no command has")
	}
}
