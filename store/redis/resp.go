package repriseredis

import (
	"bufio"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// maxBulk is the size of the largest string that the protocol knows. A length above it is
// not one.
const maxBulk = 512 << 20

// errProtocol is the failure of a connection on which something arrives that is not a
// reply.
var errProtocol = errors.New("the server answered what is not a reply of the Redis protocol")

// appendCommand appends a command as the protocol has it, and reports whether it knows
// the types of all arguments: those that commands of this package have.
func appendCommand(b []byte, args []any) ([]byte, bool) {
	b = appendLength(b, '*', len(args))
	for _, arg := range args {
		switch arg := arg.(type) {
		case string:
			b = appendBulk(b, arg)
		case *string:
			b = appendBulk(b, *arg)
		case *blob:
			b = appendBulk(b, *arg)
		case int:
			b = appendInt(b, int64(arg))
		case int64:
			b = appendInt(b, arg)
		case *int64:
			b = appendInt(b, *arg)
		default:
			return b, false
		}
	}
	return b, true
}

func appendBulk[T string | blob | []byte](b []byte, value T) []byte {
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

// reply is a reply of a server, of the kinds that commands of this package get.
type reply struct {
	kind   replyKind
	text   string // of a string or an error
	number int64
}

type replyKind uint8

const (
	replyOther replyKind = iota // an array or a status, for example
	replyText
	replyNumber
	replyNil
	replyError
)

// serverError is an error that a server answered. It is a redis.Error.
type serverError string

func (e serverError) Error() string { return string(e) }

// RedisError tells it from the errors of connections.
func (serverError) RedisError() {}

// readReply reads the next reply, in version 2 or 3 of the protocol, and skips what is
// pushed.
func readReply(in *bufio.Reader) (reply, error) {
	for {
		kind, line, err := readLine(in)
		if err != nil {
			return reply{}, err
		}
		switch kind {
		case '$', '!':
			return readBulk(in, kind, line)
		case ':':
			n, err := strconv.ParseInt(string(line), 10, 64)
			if err != nil {
				return reply{}, errProtocol
			}
			return reply{kind: replyNumber, number: n}, nil
		case '-':
			return reply{kind: replyError, text: string(line)}, nil
		case '_':
			return reply{kind: replyNil}, nil
		case '>', '|': // not the reply, which follows
			if err := skipElements(in, kind, line, 0); err != nil {
				return reply{}, err
			}
		case '*':
			if string(line) == "-1" {
				return reply{kind: replyNil}, nil
			}
			fallthrough
		default:
			return reply{}, skipRest(in, kind, line, 0)
		}
	}
}

// readLine reads the first byte of a reply and the rest of its line, which is good until
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
func readBulk(in *bufio.Reader, kind byte, length []byte) (reply, error) {
	n, err := strconv.Atoi(string(length))
	if err != nil || n < -1 || n > maxBulk {
		return reply{}, errProtocol
	}
	if n < 0 {
		return reply{kind: replyNil}, nil
	}
	r := reply{kind: replyText}
	if kind == '!' {
		r.kind = replyError
	}
	var text strings.Builder
	for text.Grow(min(n, 1<<20)); text.Len() < n; { // what a length promises is not there yet
		if _, err := in.Peek(1); err != nil {
			return reply{}, err
		}
		part, _ := in.Peek(min(in.Buffered(), n-text.Len()))
		text.Write(part)
		_, _ = in.Discard(len(part))
	}
	r.text = text.String()
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

// skipRest skips what is left of a reply whose first line was read.
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
