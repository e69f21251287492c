package pipeline

import (
	"bufio"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// maxBulk is the size in bytes of the largest string that the protocol knows. A length
// above it is invalid.
const maxBulk = 512 << 20

// errProtocol is the failure of a connection on which the server sent bytes that are not
// a reply, or a reply that does not fit the next command.
var errProtocol = errors.New("the server sent bytes that are not the expected reply of the Redis protocol")

// Reply is the reply to a command.
type Reply struct {
	Kind   Kind
	Text   string // of a String or a Failure
	Number int64
}

// Kind is the kind of a reply.
type Kind uint8

// The kinds of replies.
const (
	Other Kind = iota // an array, for example, whose content is not kept
	String
	Status // its text is not kept
	Number
	Nil
	Failure // an error of the server
)

// fits reports whether r can be the reply to a command, see [Call].
func (r Reply) fits(want byte) bool {
	switch r.Kind {
	case Failure:
		return true
	case String:
		return want == '$'
	case Status:
		return want == '+'
	case Nil:
		return want == '$' || want == '+'
	case Number:
		return want == ':'
	default:
		return false
	}
}

// readReply reads the next reply, in version 2 or 3 of the protocol, and skips
// pushes.
func readReply(in *bufio.Reader) (Reply, error) {
	for {
		kind, line, err := readLine(in)
		if err != nil {
			return Reply{}, err
		}
		switch kind {
		case '$', '!':
			return readBulk(in, kind, line)
		case ':':
			n, err := strconv.ParseInt(string(line), 10, 64)
			if err != nil {
				return Reply{}, errProtocol
			}
			return Reply{Kind: Number, Number: n}, nil
		case '-':
			return Reply{Kind: Failure, Text: string(line)}, nil
		case '+':
			return Reply{Kind: Status}, nil
		case '_':
			return Reply{Kind: Nil}, nil
		case '>', '|': // not the reply, which follows
			if err := skipElements(in, kind, line, 0); err != nil {
				return Reply{}, err
			}
		case '*':
			if string(line) == "-1" {
				return Reply{Kind: Nil}, nil
			}
			fallthrough
		default:
			return Reply{}, skipRest(in, kind, line, 0)
		}
	}
}

// readLine reads the first byte of a reply and the rest of its line, which is valid until
// the next read.
func readLine(in *bufio.Reader) (kind byte, line []byte, err error) {
	line, err = in.ReadSlice('\n')
	switch {
	case errors.Is(err, bufio.ErrBufferFull):
		return 0, nil, errProtocol
	case err != nil:
		return 0, nil, err
	case len(line) < 3 || line[len(line)-2] != '\r':
		return 0, nil, errProtocol
	}
	return line[0], line[1 : len(line)-2], nil
}

// readBulk reads a string whose length was read.
func readBulk(in *bufio.Reader, kind byte, length []byte) (Reply, error) {
	n, err := strconv.Atoi(string(length))
	if err != nil || n < -1 || n > maxBulk {
		return Reply{}, errProtocol
	}
	if n < 0 {
		return Reply{Kind: Nil}, nil
	}
	r := Reply{Kind: String}
	if kind == '!' {
		r.Kind = Failure
	}
	var text strings.Builder
	for text.Grow(min(n, 1<<20)); text.Len() < n; { // allocates at most 1 MiB for bytes that may never arrive
		if _, err := in.Peek(1); err != nil {
			return Reply{}, err
		}
		part, _ := in.Peek(min(in.Buffered(), n-text.Len()))
		text.Write(part)
		_, _ = in.Discard(len(part))
	}
	r.Text = text.String()
	return r, skipEnd(in)
}

// skipEnd skips the end of a line.
func skipEnd(in *bufio.Reader) error {
	end, err := in.Peek(2)
	if err != nil {
		return err
	}
	if string(end) != "\r\n" {
		return errProtocol
	}
	_, err = in.Discard(2)
	return err
}

// skipReply skips a reply.
func skipReply(in *bufio.Reader) error {
	kind, line, err := readLine(in)
	if err != nil {
		return err
	}
	return skipRest(in, kind, line, 0)
}

// maxDepth bounds how deep arrays may be nested.
const maxDepth = 8

// skipRest skips the rest of a reply whose first line was read.
func skipRest(in *bufio.Reader, kind byte, line []byte, depth int) error {
	switch kind {
	case '$', '!', '=':
		_, err := readBulk(in, '$', line)
		return err
	case '*', '~', '%', '>', '|':
		return skipElements(in, kind, line, depth)
	case '+', '-', ':', '_', ',', '#', '(':
		return nil
	default:
		return fmt.Errorf("%w: it starts with %q", errProtocol, kind)
	}
}

// skipElements skips the elements of an array, set, map, push or attribute.
func skipElements(in *bufio.Reader, kind byte, length []byte, depth int) error {
	n, err := strconv.Atoi(string(length))
	if err != nil || depth == maxDepth {
		return errProtocol
	}
	if kind == '%' || kind == '|' {
		n *= 2
	}
	for range max(n, 0) {
		kind, line, err := readLine(in)
		if err != nil {
			return err
		}
		if err := skipRest(in, kind, line, depth+1); err != nil {
			return err
		}
	}
	return nil
}
