package servers

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// redisError is an error reply.
type redisError string

func (e redisError) Error() string { return string(e) }

// redisCall sends one command over a new connection and returns the reply: a string, an
// int64, nil, or a []any of these. An error reply is an error. Without a deadline of ctx
// it takes at most five seconds.
func redisCall(ctx context.Context, addr string, user *url.Userinfo, args ...string) (any, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	deadline, _ := ctx.Deadline()
	if err := conn.SetDeadline(deadline); err != nil {
		return nil, err
	}
	r := bufio.NewReader(conn)
	if password, ok := user.Password(); ok {
		auth := []string{"AUTH", password}
		if user.Username() != "" {
			auth = []string{"AUTH", user.Username(), password}
		}
		if _, err := roundTrip(conn, r, auth); err != nil {
			return nil, err
		}
	}
	return roundTrip(conn, r, args)
}

func roundTrip(w io.Writer, r *bufio.Reader, args []string) (any, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(args))
	for _, a := range args {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(a), a)
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return nil, err
	}
	return readReply(r)
}

// readReply reads one reply of RESP 2.
func readReply(r *bufio.Reader) (any, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return nil, err
	}
	line = strings.TrimSuffix(line, "\r\n")
	if line == "" {
		return nil, errors.New("empty reply")
	}
	kind, rest := line[0], line[1:]
	switch kind {
	case '+':
		return rest, nil
	case '-':
		return nil, redisError(rest)
	}
	n, err := strconv.ParseInt(rest, 10, 64)
	switch {
	case err != nil:
		return nil, fmt.Errorf("reply %q: %w", line, err)
	case kind == ':':
		return n, nil
	case n < 0:
		return nil, nil //nolint:nilnil // a null reply
	case kind == '$':
		b := make([]byte, n+2)
		_, err := io.ReadFull(r, b)
		return string(b[:n]), err
	case kind == '*':
		items := make([]any, n)
		for i := range items {
			var fault redisError
			if items[i], err = readReply(r); errors.As(err, &fault) {
				items[i] = fault
			} else if err != nil {
				return nil, err
			}
		}
		return items, nil
	default:
		return nil, fmt.Errorf("reply %q of an unknown kind", line)
	}
}
