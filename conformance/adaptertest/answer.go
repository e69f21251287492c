package adaptertest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// answer is a response as it came over the wire.
type answer struct {
	status   int
	fields   []line // of the header section, in the order in which they came
	body     string
	trailers []line
	early    []answer // the informational responses before it
}

func (a answer) values(name string) []string { return valuesOf(a.fields, name) }

// value returns the only value of a field; several values are joined, so that they match
// no expected value.
func (a answer) value(name string) string { return strings.Join(a.values(name), " AND ") }

// String shows a response as a failure prints it.
func (a answer) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d", a.status)
	for _, l := range a.fields {
		fmt.Fprintf(&b, "; %s: %.80q", l.name, l.value)
	}
	fmt.Fprintf(&b, "; body of %d bytes %.80q", len(a.body), a.body)
	return b.String()
}

// reader reads responses off a connection, and is stricter than a client must be, so that
// a server with wrong framing fails.
type reader struct{ *bufio.Reader }

// answer reads one response with the informational ones before it. bodiless says that the
// request's method was HEAD.
func (r reader) answer(bodiless bool) (answer, error) {
	var early []answer
	for {
		a, err := r.head()
		if err != nil {
			return answer{early: early}, err
		}
		if a.status >= 200 || a.status == 101 {
			a.early = early
			err = r.content(&a, bodiless)
			return a, err
		}
		early = append(early, a)
	}
}

// head reads a status line and a header section.
func (r reader) head() (answer, error) {
	status, err := r.line()
	if err != nil {
		return answer{}, err
	}
	version, rest, _ := strings.Cut(status, " ")
	code, _, _ := strings.Cut(rest, " ")
	var a answer
	if a.status, err = strconv.Atoi(code); err != nil || len(code) != 3 || version != "HTTP/1.1" && version != "HTTP/1.0" {
		return answer{}, fmt.Errorf("not a status line: %.80q", status)
	}
	a.fields, err = r.section()
	return a, err
}

// section reads lines up to an empty one.
func (r reader) section() ([]line, error) {
	var lines []line
	for {
		text, err := r.line()
		if err != nil || text == "" {
			return lines, err
		}
		name, value, found := strings.Cut(text, ":")
		if !found || name == "" || strings.ContainsAny(name, " \t") {
			return lines, fmt.Errorf("not a field line: %.80q", text)
		}
		lines = append(lines, line{name, strings.Trim(value, " \t")})
	}
}

// line reads one line, which ends in CRLF and has no other CR in it.
func (r reader) line() (string, error) {
	text, err := r.ReadString('\n')
	if err != nil {
		if text != "" && errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return "", err
	}
	trimmed, found := strings.CutSuffix(text, "\r\n")
	if !found || strings.Contains(trimmed, "\r") {
		return "", fmt.Errorf("a line with a stray CR or LF: %.80q", text)
	}
	return trimmed, nil
}

// content reads the body of a, and its trailers, as its header frames them (RFC 9112,
// section 6.3).
func (r reader) content(a *answer, bodiless bool) error {
	codings, lengths := a.values("Transfer-Encoding"), a.values("Content-Length")
	switch {
	case len(lengths) > 1, len(lengths) > 0 && len(codings) > 0:
		return fmt.Errorf("an answer that is framed twice: %v", a)
	case a.status == 204 && len(lengths)+len(codings) > 0:
		return fmt.Errorf("a 204 with the framing of a body: %v", a)
	case bodiless, a.status == 101, a.status == 204, a.status == 304:
		return nil
	case len(codings) > 0:
		if !slices.Equal(codings, []string{"chunked"}) {
			return fmt.Errorf("transfer codings %q", codings)
		}
		return r.chunks(a)
	case len(lengths) > 0:
		n, err := strconv.Atoi(lengths[0])
		if err != nil || n < 0 {
			return fmt.Errorf("a length of %q", lengths[0])
		}
		return r.exactly(a, n)
	default:
		rest, err := io.ReadAll(r)
		a.body = string(rest)
		return err
	}
}

// exactly reads n bytes more of the body.
func (r reader) exactly(a *answer, n int) error {
	part := make([]byte, n)
	got, err := io.ReadFull(r, part)
	a.body += string(part[:got])
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return err
}

func (r reader) chunks(a *answer) error {
	for {
		size, err := r.line()
		if err != nil {
			return unexpected(err)
		}
		n, err := strconv.ParseUint(size, 16, 31)
		if err != nil {
			return fmt.Errorf("a chunk of the size %.20q", size)
		}
		if n == 0 {
			a.trailers, err = r.section()
			return unexpected(err)
		}
		if err := r.exactly(a, int(n)); err != nil {
			return err
		}
		if end, err := r.line(); err != nil || end != "" {
			return fmt.Errorf("a chunk is longer than its size: %.20q, %w", end, unexpected(err))
		}
	}
}

// unexpected says that a body may not end where it did.
func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
