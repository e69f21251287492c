package load

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/reprise-go/reprise/conformance/adaptertest"
	"github.com/reprise-go/reprise/core/protocol"
)

// keyLength is the length of a UUID, which is the only key that some libraries accept.
const keyLength = 36

const requestBody = `{"item":"item-0000000001","quantity":1,"note":"nothing special"}`

var (
	endOfHead = []byte("\r\n\r\n")
	created   = []byte("http/1.1 201 ")
	marked    = []byte(strings.ToLower(protocol.FieldReplayed) + ": true")
	length    = []byte("\r\ncontent-length: ")
)

// conn sends requests over one connection, without allocating.
type conn struct {
	net.Conn

	request []byte
	key     []byte // the place of the key in request; nil: none
	kind    []byte // the place of the kind in request
	answer  []byte
	body    int // bytes of the body of a right response; 0: any
}

func dial(ctx context.Context, o Order) (*conn, error) {
	nc, err := new(net.Dialer).DialContext(ctx, "tcp", o.Addr)
	if err != nil {
		return nil, err
	}
	c := &conn{Conn: nc, answer: make([]byte, 4<<10), body: len(adaptertest.DefaultBody)}
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\n", cmp.Or(o.Method, "POST"), cmp.Or(o.Target, "/t/orders"))
	fmt.Fprintf(&b, "Content-Length: %d\r\n", len(requestBody))
	if o.Program != "" {
		fmt.Fprintf(&b, "%s: %s\r\n", adaptertest.ProgramHeader, o.Program)
		c.body = 0
	}
	var key, kind int
	if o.Kind != NoKey {
		b.WriteString("Idempotency-Key: ")
		key = b.Len()
		b.WriteString(strings.Repeat("0", keyLength) + "\r\n")
	}
	b.WriteString(KindHeader + ": ")
	kind = b.Len()
	b.WriteString("new   " + "\r\n\r\n" + requestBody)
	c.request = b.Bytes()
	c.kind = c.request[kind : kind+len(Replay)]
	if key > 0 {
		c.key = c.request[key : key+keyLength]
	}
	return c, nil
}

// renew gives the next requests new keys.
func (c *conn) renew(serial int64) {
	if c.key == nil {
		return
	}
	copy(c.key, prefix)
	digits := strconv.AppendInt(c.answer[:0], serial, 10)
	copy(c.key[keyLength-len(digits):], digits)
}

// once sends a request and reads its response. Only a replay may be marked as one, and if
// mark is set it has to be.
func (c *conn) once(kind Kind, mark bool) error {
	if _, err := c.Write(c.request); err != nil {
		return err
	}
	for n := 0; ; {
		if n == len(c.answer) {
			return fmt.Errorf("the answer is longer than %d bytes", n)
		}
		m, err := c.Read(c.answer[n:])
		n += m
		end := bytes.Index(c.answer[:n], endOfHead)
		if err != nil {
			return fmt.Errorf("%w after %q", err, c.answer[:n])
		}
		if end < 0 {
			continue
		}
		head := c.answer[:end+2]
		for i, b := range head { // fields have names in letters of any case
			if 'A' <= b && b <= 'Z' {
				head[i] = b | 0x20
			}
		}
		size, err := contentLength(head)
		if err != nil {
			return err
		}
		if n < end+len(endOfHead)+size {
			continue
		}
		replayed := bytes.Contains(head, marked)
		if !bytes.HasPrefix(head, created) || c.body > 0 && size != c.body || mark && replayed != (kind == Replay) {
			return fmt.Errorf("a request of kind %s was answered %q", kind, c.answer[:n])
		}
		return nil
	}
}

// contentLength reads the length of a body.
func contentLength(head []byte) (int, error) {
	_, value, found := bytes.Cut(head, length)
	if !found {
		return 0, fmt.Errorf("no Content-Length in %q", head)
	}
	n := 0
	for _, digit := range value[:max(bytes.IndexByte(value, '\r'), 0)] {
		if digit < '0' || digit > '9' {
			return 0, fmt.Errorf("the Content-Length is no number in %q", head)
		}
		n = 10*n + int(digit-'0')
	}
	return n, nil
}
