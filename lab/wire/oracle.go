// Package wire sends malformed requests to every adapter, over raw sockets, and compares
// the requests that run with an oracle: a reader of HTTP/1.1 that rejects all bytes that
// two recipients may read in different ways, written from RFC 9112 and from no server.
//
// A run that the oracle does not allow, a claim for a request that was refused, a request
// without a response (the effect of a panic in net/http), a response of 500, and memory
// that grows with refused requests are failures. The defects that servers resolve before
// any handler sees the request are listed for each of them, as a tolerance with its
// reason.
//
//	make wire REQUESTS=100000 SEED=7
package wire

import (
	"bytes"
	"regexp"
	"strconv"
	"strings"
)

// defect is why the oracle does not accept a request. It does not read on behind one.
type defect string

// The defects.
const (
	none          defect = ""
	requestLine   defect = "request line"
	folded        defect = "folded line"
	badLine       defect = "line that is no field"
	bareLF        defect = "line end without CR"
	bareCR        defect = "CR or NUL in a value"
	lengthsDiffer defect = "two lengths"
	equalLength   defect = "two equal lengths"
	badLength     defect = "length that is no number"
	coding        defect = "another coding"
	both          defect = "length beside a coding"
	coding10      defect = "coding in HTTP/1.0"
	shortBody     defect = "body that breaks off"
	badChunk      defect = "chunk that is none"
	badTrailer    defect = "trailer section that is none"
)

// request is a request as the oracle reads it.
type request struct {
	op      string
	method  string
	keys    []string // the values of the key's field
	nearKey bool     // a field would be the key's but for bytes that no name has
	defect  defect
	whole   bool // the header section has an end, so that the server owes a response
	coded   bool // it seems to have a transfer coding
	odd     bool // a server may refuse it: a value has a control byte, or expects something, or chunks have no text (R50)
	closes  bool // the connection ends behind it, defect or not
}

// runs reports whether the handler runs: the request is whole, and its key, if any, is
// valid.
func (r *request) runs() bool {
	if r.defect != none {
		return false
	}
	return !r.keyed() || len(r.keys) == 1 && validKey(r.keys[0])
}

// keyed reports whether the middleware looks at the request.
func (r *request) keyed() bool {
	return (r.method == "POST" || r.method == "PATCH") && (len(r.keys) > 0 || r.nearKey)
}

var (
	token    = regexp.MustCompile("^[!#$%&'*+.^_`|~0-9A-Za-z-]+$")
	control  = regexp.MustCompile(`[\x00-\x1f\x7f]`)
	digits   = regexp.MustCompile(`^[0-9]+$`)
	chunk    = regexp.MustCompile(`^([0-9A-Fa-f]{1,7})(;[\t\x20-\x7e]*)?$`)
	start    = regexp.MustCompile(`^([\x21-\x7e]+) /t/([0-9a-z-]+) HTTP/1\.([01])$`)
	bareKey  = regexp.MustCompile(`^[A-Za-z0-9._~:+/=-]{1,255}$`)
	quoteKey = regexp.MustCompile(`^"([\x20\x21\x23-\x5b\x5d-\x7e]|\\["\\]){1,255}"$`)
)

func validKey(line string) bool {
	line = strings.Trim(line, " \t")
	return bareKey.MatchString(line) || quoteKey.MatchString(line)
}

// readAll reads the requests that a connection carries, up to the first with a defect.
func readAll(stream []byte) []request {
	var all []request
	for len(stream) > 0 {
		var r request
		r, stream = readOne(stream)
		all = append(all, r)
		if r.defect != none || r.closes {
			break
		}
	}
	return all
}

// readOne reads one request and returns the rest of the stream.
func readOne(stream []byte) (r request, rest []byte) {
	head, rest, whole := bytes.Cut(stream, []byte("\r\n\r\n"))
	lines := strings.Split(string(head), "\r\n")
	first := start.FindStringSubmatch(lines[0])
	if first == nil {
		r.defect = requestLine
		return r, nil
	}
	r.method, r.op, r.whole = first[1], first[2], whole
	r.coded = strings.Contains(strings.ToLower(string(head)), "transfer-encoding")
	f := r.readFields(lines[1:])
	http10 := first[3] == "0"
	r.closes = r.closes || http10
	switch {
	case !whole && r.defect == none:
		r.defect = shortBody
	case r.defect != none:
	case len(f.codings) > 0 && len(f.lengths) > 0:
		r.defect = both
	case len(f.codings) > 0 && http10:
		r.defect = coding10
	case len(f.codings) > 1, len(f.codings) == 1 && !strings.EqualFold(f.codings[0], "chunked"):
		r.defect = coding
	case len(f.codings) == 1:
		rest = r.readChunks(rest)
		return r, rest
	}
	if r.defect == none && len(f.lengths) > 0 {
		rest = r.readLength(f.lengths, rest)
	}
	return r, rest
}

// framing is the fields about the body in a header section.
type framing struct{ lengths, codings []string }

func (r *request) readFields(lines []string) (f framing) {
	for _, line := range lines {
		name, value, there := strings.Cut(line, ":")
		r.odd = r.odd || control.MatchString(value) || strings.EqualFold(name, "Expect") || strings.EqualFold(name, "Trailer")
		value = strings.Trim(value, " \t")
		switch clean := strings.Map(tokenOnly, name); {
		case strings.EqualFold(name, "Idempotency-Key"):
			r.keys = append(r.keys, value)
		case strings.EqualFold(clean, "Idempotency-Key"):
			r.nearKey = true
		case strings.ContainsAny(line, "\r\n") && strings.Contains(strings.ToLower(line), "idempotency-key"):
			r.nearKey = true
		case strings.EqualFold(name, "Content-Length"):
			f.lengths = append(f.lengths, value)
		case strings.EqualFold(name, "Transfer-Encoding"):
			f.codings = append(f.codings, value)
		case strings.EqualFold(name, "Connection"):
			r.closes = r.closes || strings.EqualFold(value, "close")
		}
		switch {
		case r.defect != none:
		case strings.HasPrefix(line, " "), strings.HasPrefix(line, "\t"):
			r.defect = folded
		case strings.Contains(line, "\n"):
			r.defect = bareLF
		case !there, !token.MatchString(name):
			r.defect = badLine
		case strings.ContainsAny(value, "\r\x00"):
			r.defect = bareCR
		}
	}
	return f
}

func tokenOnly(c rune) rune {
	if c < 0x80 && token.MatchString(string(c)) {
		return c
	}
	return -1
}

func (r *request) readLength(lengths []string, rest []byte) []byte {
	n, err := strconv.Atoi(lengths[0])
	switch {
	case len(lengths) > 1 && lengths[0] == lengths[1]:
		r.defect = equalLength
	case len(lengths) > 1:
		r.defect = lengthsDiffer
	case !digits.MatchString(lengths[0]), err != nil:
		r.defect = badLength
	case n > len(rest):
		r.defect = shortBody
	default:
		return rest[n:]
	}
	return nil
}

func (r *request) readChunks(rest []byte) []byte {
	for blank := true; ; {
		line, behind, whole := bytes.Cut(rest, []byte("\r\n"))
		size := chunk.FindSubmatch(line)
		switch {
		case size == nil && whole:
			r.defect = badChunk
			return nil
		case size == nil, !whole:
			r.defect = shortBody
			return nil
		}
		n, _ := strconv.ParseInt(string(size[1]), 16, 32) // seven digits
		if n == 0 {
			r.odd = r.odd || blank
			return r.readTrailers(behind)
		}
		if int(n)+2 > len(behind) {
			r.defect = shortBody
			return nil
		}
		if string(behind[n:n+2]) != "\r\n" {
			r.defect = badChunk
			return nil
		}
		blank = blank && len(bytes.TrimSpace(behind[:n])) == 0
		rest = behind[n+2:]
	}
}

func (r *request) readTrailers(rest []byte) []byte {
	for {
		line, behind, whole := strings.Cut(string(rest), "\r\n")
		name, value, there := strings.Cut(line, ":")
		switch {
		case !whole:
			r.defect = badTrailer
			return nil
		case line == "":
			return []byte(behind)
		case !there, !token.MatchString(name), strings.ContainsAny(value, "\r\n\x00"):
			r.defect = badTrailer
			return nil
		}
		rest = []byte(behind)
	}
}
