package servers

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

// pgQuery runs SQL statements over a new connection to a PostgreSQL server that trusts
// the user, and returns the rows of all of them, with NULL as an empty string.
func pgQuery(ctx context.Context, addr, database, sql string) ([][]string, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()

	rows, err := converse(conn, database, sql)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return rows, err
}

// pgUser is the superuser of the servers that are started here.
const pgUser = "postgres"

// converse speaks version 3.0 of the protocol, the simple query flow.
func converse(conn net.Conn, database, sql string) ([][]string, error) {
	var startup []byte
	startup = binary.BigEndian.AppendUint32(startup, 3<<16)
	for _, s := range []string{"user", pgUser, "database", database, ""} {
		startup = append(append(startup, s...), 0)
	}
	if err := pgSend(conn, 0, startup); err != nil {
		return nil, err
	}
	r := bufio.NewReader(conn)
	if _, err := pgUntilReady(r); err != nil {
		return nil, err
	}
	if err := pgSend(conn, 'Q', append([]byte(sql), 0)); err != nil {
		return nil, err
	}
	rows, err := pgUntilReady(r)
	_ = pgSend(conn, 'X', nil)
	return rows, err
}

// pgSend sends one message. The startup message has no kind.
func pgSend(w io.Writer, kind byte, body []byte) error {
	var b []byte
	if kind != 0 {
		b = append(b, kind)
	}
	b = binary.BigEndian.AppendUint32(b, uint32(len(body)+4)) //nolint:gosec // statements of tests are short
	_, err := w.Write(append(b, body...))
	return err
}

// pgUntilReady reads messages until the server waits for a query, and returns the rows
// among them. The first error that the server reports is returned at that moment, or at
// once if it closes the connection.
func pgUntilReady(r *bufio.Reader) (rows [][]string, fault error) {
	for {
		kind, body, err := pgReceive(r)
		if err != nil {
			return nil, errors.Join(fault, err)
		}
		switch kind {
		case 'R':
			if len(body) < 4 || binary.BigEndian.Uint32(body) != 0 {
				return nil, errors.New("the server asks for a password")
			}
		case 'D':
			row, err := pgRow(body)
			if err != nil {
				return nil, err
			}
			rows = append(rows, row)
		case 'E':
			if fault == nil {
				fault = pgFault(body)
			}
		case 'Z':
			return rows, fault
		}
	}
}

func pgReceive(r io.Reader) (kind byte, body []byte, err error) {
	var head [5]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, nil, err
	}
	n := binary.BigEndian.Uint32(head[1:])
	if n < 4 || n > 1<<26 {
		return 0, nil, fmt.Errorf("message of %d bytes", n)
	}
	body = make([]byte, n-4)
	_, err = io.ReadFull(r, body)
	return head[0], body, err
}

var errTruncated = errors.New("truncated message")

// pgRow reads the columns of a DataRow.
func pgRow(b []byte) ([]string, error) {
	if len(b) < 2 {
		return nil, errTruncated
	}
	row := make([]string, binary.BigEndian.Uint16(b))
	b = b[2:]
	for i := range row {
		if len(b) < 4 {
			return nil, errTruncated
		}
		n := int(int32(binary.BigEndian.Uint32(b))) //nolint:gosec // -1 is NULL
		b = b[4:]
		if n < 0 {
			continue
		}
		if len(b) < n {
			return nil, errTruncated
		}
		row[i], b = string(b[:n]), b[n:]
	}
	return row, nil
}

// pgFault reads an ErrorResponse.
func pgFault(b []byte) error {
	field := map[byte]string{}
	for len(b) > 1 {
		name, rest := b[0], b[1:]
		end := 0
		for end < len(rest) && rest[end] != 0 {
			end++
		}
		field[name] = string(rest[:end])
		b = rest[min(end+1, len(rest)):]
	}
	return fmt.Errorf("%s (SQLSTATE %s)", field['M'], field['C'])
}
