package repriseredis

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// fake is a server, on a real socket, that answers as a test says, such as a real server
// does only when it is in trouble. It answers the greetings of clients itself, and the
// second half of a native claim: see expiry. It logs the other commands.
type fake struct {
	Addr   string
	Stop   func()                                        // closes all connections and refuses others
	answer func(conn, call int, command []string) string // call counts script calls and claims, from 1
	expiry string                                        // the answer to the second half of a native claim; empty: it was in time

	mu    sync.Mutex
	calls int
	set   map[int]string // the answer to the question for an expiry, by connection
	found map[int]string // the record that a claim in a batch reads, by connection
	log   []string       // every command after the handshake: its connection, name and arguments that are text
}

const servicePrefix = "orders:"

// Answers that are not replies of the protocol.
const (
	cut  = "cut"  // closes the connection
	mute = "mute" // no answer at all
)

// newFake starts a server that ends with the test. answer returns the reply to each
// command, in the protocol of Redis, or cut or mute. Connections are numbered from 1.
func newFake(tb testing.TB, answer func(conn, call int, command []string) string) *fake {
	tb.Helper()
	var listening net.ListenConfig
	l, err := listening.Listen(tb.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	f := &fake{answer: answer, Addr: l.Addr().String(), set: map[int]string{}, found: map[int]string{}}
	var serving sync.WaitGroup
	var mu sync.Mutex
	var conns []net.Conn
	f.Stop = sync.OnceFunc(func() {
		_ = l.Close()
		mu.Lock()
		defer mu.Unlock()
		for _, c := range conns {
			_ = c.Close()
		}
	})
	serving.Go(func() {
		for n := 1; ; n++ {
			c, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			conns = append(conns, c)
			mu.Unlock()
			serving.Go(func() { f.serve(c, n) })
		}
	})
	tb.Cleanup(func() { f.Stop(); serving.Wait() })
	return f
}

func (f *fake) serve(c net.Conn, n int) {
	defer func() { _ = c.Close() }()
	for in := bufio.NewReader(c); ; {
		command, err := readCommand(in)
		if err != nil {
			return
		}
		var out string
		switch strings.ToLower(command[0]) {
		case "hello":
			out = "-ERR unknown command 'HELLO'\r\n"
		case "client":
			out = "+OK\r\n"
		case "ping":
			out = "+PONG\r\n"
		default:
			out = f.reply(n, command)
		}
		switch out {
		case cut:
			return
		case mute:
		default:
			if _, err := io.WriteString(c, out); err != nil {
				return
			}
		}
	}
}

func readCommand(in *bufio.Reader) ([]string, error) {
	n, err := readLength(in)
	if err != nil {
		return nil, err
	}
	command := make([]string, n)
	for i := range command {
		size, err := readLength(in)
		if err != nil {
			return nil, err
		}
		arg := make([]byte, size+2)
		if _, err := io.ReadFull(in, arg); err != nil {
			return nil, err
		}
		command[i] = string(arg[:size])
	}
	return command, nil
}

func readLength(in *bufio.Reader) (int, error) {
	line, err := in.ReadString('\n')
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(line[1:]))
}

// bulk returns the reply that is the string s.
func bulk(s string) string { return fmt.Sprintf("$%d\r\n%s\r\n", len(s), s) }

func (f *fake) reply(conn int, command []string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	name := strings.ToLower(command[0])
	switch name {
	case "eval", "evalsha":
		f.calls++
		f.log = append(f.log, fmt.Sprintf("%d %s", conn, name))
	case "set":
		f.calls++
		f.log = append(f.log, fmt.Sprintf("%d %s", conn, name))
		out := f.answer(conn, f.calls, command)
		f.noteExpiry(conn, command, out)
		if !slices.Contains(command, "get") {
			return f.splitFound(conn, out)
		}
		if out == claimed {
			out = "$-1\r\n"
		}
		return out
	case "getrange":
		found := f.found[conn]
		if last, _ := strconv.Atoi(command[3]); len(found) > last {
			found = found[:last+1]
		}
		return bulk(found)
	case "pexpiretime":
		if f.expiry != "" {
			return f.expiry
		}
		if f.set[conn] == "" {
			return ":-2\r\n"
		}
		return f.set[conn]
	default:
		f.log = append(f.log, fmt.Sprintf("%d %s", conn, strings.ToLower(strings.Join(command, " "))))
	}
	return f.answer(conn, f.calls, command)
}

// noteExpiry prepares the answer to the second half of a native claim: it was in the
// millisecond 1 of the server's clock, or is refused like the first half.
func (f *fake) noteExpiry(conn int, command []string, first string) {
	span, _ := strconv.Atoi(command[slices.Index(command, "px")+1])
	f.set[conn] = fmt.Sprintf(":%d\r\n", span+1)
	if first == mute || strings.HasPrefix(first, "-") {
		f.set[conn] = first
	}
}

// splitFound returns the answer of a claim as that of its SET in a batch, and keeps the
// record for GETRANGE.
func (f *fake) splitFound(conn int, out string) string {
	f.found[conn] = ""
	switch {
	case out == claimed:
		return "+OK\r\n"
	case strings.HasPrefix(out, "$"):
		_, text, _ := strings.Cut(strings.TrimSuffix(out, "\r\n"), "\r\n")
		f.found[conn] = text
		return "$-1\r\n"
	}
	return out
}

// seen returns the log.
func (f *fake) seen() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return strings.Join(f.log, ", ")
}

// sent returns the log without the connections: newer releases of go-redis send pipelines
// on others.
func (f *fake) sent() string {
	return connections.ReplaceAllString(f.seen(), "$1")
}

var connections = regexp.MustCompile(`(^|, )\d+ `)
