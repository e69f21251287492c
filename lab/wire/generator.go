package wire

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// generator makes requests that are malformed in one way or several.
type generator struct{ *rand.Rand }

// draft is a request before it is written down.
type draft struct {
	version string
	lines   []string // of the header section, without the line ends
	body    string
}

// stream returns the bytes of a connection: a request of op with a key, its defect, and
// sometimes, in its body or behind it, another request, of hidden.
func (g generator) stream(op, hidden string) []byte {
	second := fmt.Sprintf("POST /t/%s HTTP/1.1\r\nHost: test\r\nIdempotency-Key: %s\r\nContent-Length: 0\r\n\r\n", hidden, hidden)
	d := draft{version: "HTTP/1.1", lines: []string{"Host: test", "X-Test-Tenant: wire", "Idempotency-Key: " + op, "Content-Type: application/json"}}
	d.body = g.pick("", "{}", `{"amount":1}`, strings.Repeat("x", g.IntN(200)), second)
	if g.IntN(3) == 0 {
		d.lines = append(d.lines, "Transfer-Encoding: chunked")
		d.body = g.chunks(d.body)
	} else {
		d.lines = append(d.lines, fmt.Sprintf("Content-Length: %d", len(d.body)))
	}
	g.Shuffle(len(d.lines)-1, func(i, j int) { d.lines[i+1], d.lines[j+1] = d.lines[j+1], d.lines[i+1] })
	for range g.IntN(3) {
		g.spoil(&d)
	}
	head := "POST /t/" + op + " " + d.version + "\r\n"
	rest := []byte(strings.Join(d.lines, "\r\n") + "\r\n\r\n" + d.body + g.pick("", "", second))
	switch g.IntN(8) {
	case 0:
		rest = rest[:g.IntN(len(rest)+1)]
	case 1:
		host := len("Host: test\r\n")
		rest[host+g.IntN(len(rest)-host)] = byte(g.IntN(256))
	}
	return append([]byte(head), rest...)
}

// chunks returns a body in chunks, sometimes not quite.
func (g generator) chunks(body string) string {
	var b strings.Builder
	end := g.pick("\r\n", "\r\n", "\r\n", "\r\n", "\n", "X\r\n", "")
	for len(body) > 0 {
		n := 1 + g.IntN(len(body))
		size := fmt.Sprintf(g.pick("%x", "%x", "%x", "%X", "0%x", "%x;a=b", "%x ", "+%x", "0x%x", "%xg", "-%x"), n)
		b.WriteString(size + "\r\n" + body[:n] + end)
		body = body[n:]
	}
	b.WriteString(g.pick("0\r\n", "0\r\n", "0\r\n", "00\r\n", "0;a\r\n", "0\n", ""))
	b.WriteString(g.pick("", "", "", "Idempotency-Key: trailer\r\n", "X-Test-Tenant: victim\r\n", "X: \x00\r\n", "no field\r\n", " folded\r\n"))
	return b.String() + g.pick("\r\n", "\r\n", "\r\n", "")
}

// spoil makes one thing wrong.
func (g generator) spoil(d *draft) {
	i := 1 + g.IntN(len(d.lines)-1) // Host stays: without it no route matches
	line := d.lines[i]
	name, value, _ := strings.Cut(line, ":")
	switch g.IntN(16) {
	case 0:
		d.lines[i] += "\r\n" + g.pick(" ", "\t") + g.pick("folded", "Transfer-Encoding: chunked", "Content-Length: 0", strings.Repeat("x", 80))
	case 1:
		d.lines = append(d.lines, g.pick("Content-Length: 0", "Content-Length: 5", "Content-Length: 90", fmt.Sprintf("Content-Length: %d", len(d.body))))
	case 2:
		d.lines = append(d.lines, "Transfer-Encoding: "+g.pick("chunked", "gzip", "gzip, chunked", "identity", "xchunked", "\x0bchunked", "chunked;a", "CHUNKED", ""))
	case 3:
		d.lines[i] = name + g.pick("\x00", "\x0b", "\x7f", " ", "\xff", "(", "") + ":" + value
	case 4:
		d.lines[i] = g.pick("\x00", "\x0b", "\x01", "\xff") + line
	case 5:
		d.lines[i] += g.pick("\r", "\x00", "\rX: 1", "\rIdempotency-Key: cr", "\r\r")
	case 6:
		d.lines[i] += "\n" + g.pick("X: 1", "Content-Length: 7", "Transfer-Encoding: chunked", "Idempotency-Key: lf", "")
	case 7:
		d.lines[i] = g.pick("no field", ":", ": value", "", name+" : 1")
	case 8, 13:
		d.lines = append(d.lines, "Idempotency-Key: "+g.pick("other", "", `"quoted"`, "a, b"))
	case 9, 14, 15: // the middleware refuses these itself, everywhere
		for j := range d.lines {
			if strings.HasPrefix(d.lines[j], "Idempotency-Key:") {
				d.lines[j] = "Idempotency-Key: " + g.pick(`"`, `"a`, "a b", "\x01", "", `""`, strings.Repeat("k", 256), "a\tb", "\xc3\xa4", `"a" b`, `"a\"`)
			}
		}
	case 10:
		d.version = "HTTP/1.0"
	case 11:
		for j := range d.lines {
			if strings.HasPrefix(d.lines[j], "Content-Length:") {
				d.lines[j] = fmt.Sprintf("Content-Length: %s%d%s", g.pick("", "", "+", "-", "0x", "\t"), max(0, len(d.body)+g.IntN(9)-4), g.pick("", "", " ", ", 0", ".0", "\x0b"))
			}
		}
	default:
		d.lines = append(d.lines, g.pick("Connection: close", "Expect: 100-continue", "X: "+strings.Repeat("y", 2000), "Trailer: Idempotency-Key"))
	}
}

func (g generator) pick(from ...string) string { return from[g.IntN(len(from))] }
