package wire

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// reply is the significant part of a response.
type reply struct {
	status int
	closes bool // no response follows
}

// send sends a stream, ends it, and returns the responses up to the first that is none.
func (s *subject) send(stream []byte) []reply {
	s.t.Helper()
	conn, err := new(net.Dialer).DialContext(s.t.Context(), "tcp", s.addr)
	if err != nil {
		s.t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patience))
	_, _ = conn.Write(stream) // the server may have closed the connection before
	_ = conn.(*net.TCPConn).CloseWrite()
	text, err := io.ReadAll(conn)
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		s.fail("no end of the connection", stream)
	}
	return repliesIn(text)
}

func repliesIn(text []byte) (replies []reply) {
	for from := bufio.NewReader(bytes.NewReader(text)); ; {
		res, err := http.ReadResponse(from, nil)
		if err != nil {
			return replies
		}
		_, err = io.Copy(io.Discard, res.Body)
		_ = res.Body.Close()
		switch {
		case err != nil:
			return replies
		case res.StatusCode >= http.StatusOK:
			replies = append(replies, reply{res.StatusCode, res.Close})
		}
	}
}

// executions asks how often an operation ran.
func (s *subject) executions(op string) int {
	s.t.Helper()
	return s.executionsOf([]string{op})[0]
}

// executionsOf asks for many operations at once, on a new connection.
func (s *subject) executionsOf(ops []string) []int {
	s.t.Helper()
	if s.queries == nil {
		s.queries = s.dial()
		s.answers = bufio.NewReader(s.queries)
	}
	_ = s.queries.SetDeadline(time.Now().Add(patience))
	var queries strings.Builder
	for _, op := range ops {
		queries.WriteString("GET /executions/" + op + " HTTP/1.1\r\nHost: test\r\n\r\n")
	}
	s.write(s.queries, queries.String())
	counts := make([]int, len(ops))
	for i := range ops {
		res, err := http.ReadResponse(s.answers, nil)
		if err != nil {
			s.t.Fatal(err)
		}
		var got struct {
			Executions int `json:"executions"`
		}
		err = json.NewDecoder(res.Body).Decode(&got)
		_, _ = io.Copy(io.Discard, res.Body)
		_ = res.Body.Close()
		if err != nil {
			s.t.Fatal(err)
		}
		counts[i] = got.Executions
	}
	return counts
}
