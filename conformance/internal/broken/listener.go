package broken

import (
	"bytes"
	"net"
	"regexp"
	"strings"
)

// Listener returns a listener for a server of net/http with a flaw. Without one it closes
// every connection whose first request has a header section that its recipients may read
// in different ways, as far as net/http would serve it.
func Listener(flaw Flaw, ln net.Listener) net.Listener { return listener{ln, flaw} }

type listener struct {
	net.Listener

	flaw Flaw
}

// Accept implements [net.Listener].
func (l listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &headConn{Conn: c, flaw: l.flaw}, nil
}

// headConn is a connection that holds the first header section back until it is whole.
type headConn struct {
	net.Conn

	flaw Flaw
	head []byte // the rewritten header section, and then its unread rest
	read bool   // it is whole
	err  error  // why it will never be
}

// Read implements [net.Conn].
func (c *headConn) Read(p []byte) (int, error) {
	if !c.read {
		c.readHead()
	}
	if len(c.head) > 0 {
		n := copy(p, c.head)
		c.head = c.head[n:]
		return n, nil
	}
	if c.err != nil {
		return 0, c.err
	}
	return c.Conn.Read(p)
}

// readHead reads until the first header section is whole, or never will be. Deadlines end
// one call of it.
func (c *headConn) readHead() {
	buf := make([]byte, 4096)
	for {
		end := bytes.Index(c.head, []byte("\r\n\r\n"))
		if end >= 0 {
			c.read = true
			request, lines, _ := strings.Cut(string(c.head[:end+2]), "\r\n")
			if refuses(c.flaw, lines) {
				c.head, c.err = nil, net.ErrClosed
				_ = c.Conn.Close()
				return
			}
			c.head = append([]byte(request+"\r\n"+rewrite(c.flaw, lines)), c.head[end+2:]...)
			return
		}
		n, err := c.Conn.Read(buf)
		c.head = append(c.head, buf[:n]...)
		if err != nil {
			c.read, c.err = true, err
			return
		}
	}
}

var (
	foldedLine  = regexp.MustCompile(`(^|\n)[ \t]`)
	lengthLine  = regexp.MustCompile(`(?i)(^|\n)content-length:[^\n]*`)
	codingLine  = regexp.MustCompile(`(?i)(^|\n)transfer-encoding:[^\n]*`)
	controlByte = regexp.MustCompile(`[\x00-\x08\x0b\x0c\x0e-\x1f]`)
)

// refuses reports whether a header section is refused that net/http would serve.
func refuses(flaw Flaw, lines string) bool {
	folded := foldedLine.MatchString(lines)
	both := lengthLine.MatchString(lines) && codingLine.MatchString(lines)
	return folded && flaw != "unfolds-lines" || both && flaw != "prefers-chunks"
}

// rewrite makes a header section that net/http refuses one that it serves.
func rewrite(flaw Flaw, lines string) string {
	switch flaw {
	case "takes-last-length":
		if all := lengthLine.FindAllStringIndex(lines, -1); len(all) > 1 {
			first := all[0]
			return strings.TrimPrefix(lines[:first[0]]+lines[first[1]:], "\n")
		}
	case "takes-any-coding":
		if codingLine.MatchString(lines) {
			return strings.TrimPrefix(codingLine.ReplaceAllString(lines, ""), "\n") + "Transfer-Encoding: chunked\r\n"
		}
	case "drops-control-bytes":
		return controlByte.ReplaceAllString(lines, "")
	default:
	}
	return lines
}
