package proxy

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/reprise-go/reprise/core/protocol"
)

// A service may read a request otherwise than the proxy: decode its path again, split it
// at other bytes, or fold the names of fields. So only a request in normal form is
// forwarded, where another form could have another policy, scope or fingerprint:
//
//   - The path, decoded once, is in UTF-8, and has no empty segment, "." or "..", none of
//     \ ; ? # % and no control byte. No slash is escaped.
//   - The host is a name or an address, with a port or without. It is forwarded in lower
//     case, without a dot at its end.
//   - No field that names a method changes the policy.
//   - A field of the key, the scope or the fingerprint has no other spelling beside it
//     that a CGI or WSGI server takes for its own, and is not for this connection only.

// doubts are the details of the problems of requests that are not in normal form.
const (
	doubtPath   = "The path has a part that services read in different ways, such as an escaped slash, \"..\" or \";\". Nothing was run."
	doubtHost   = "The host is not a name or an address with a port. Nothing was run."
	doubtMethod = "The method is not in upper case, or a field of the header names another one. Nothing was run."
	doubtField  = "A field that the key, the scope or the fingerprint is made of has another spelling, or is for this connection only. Nothing was run."
)

// doubt returns why a service might read a request otherwise, empty if that would change
// nothing. The host of r is in normal form if it has one.
func (rt *routes) doubt(r *http.Request, p *policy) string {
	if method := strings.ToUpper(r.Method); method != r.Method && slices.Contains(rt.methods, method) || rt.overridden(r, p) {
		return doubtMethod
	}
	if !slices.Contains(rt.methods, r.Method) {
		return "" // it passes, whatever its policy is
	}
	if rt.routed && !normalPath(r.URL.EscapedPath()) {
		return doubtPath
	}
	if rt.routed && !isHost(r.Host) {
		return doubtHost
	}
	if slices.Contains(p.methods, r.Method) && !p.hasFieldsOnce(r.Header) {
		return doubtField
	}
	return ""
}

// overrides are fields by which frameworks let a client name another method.
var overrides = []string{"X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override"}

// overridden reports whether a field names a method that has another policy, or that its
// policy guards unlike that of the request.
func (rt *routes) overridden(r *http.Request, p *policy) bool {
	for name, values := range r.Header {
		if !slices.ContainsFunc(overrides, func(o string) bool { return folds(name, o) }) {
			continue
		}
		for _, value := range values {
			other := *r
			other.Method = strings.ToUpper(strings.TrimSpace(value))
			if q, _ := rt.of(&other); slices.Contains(q.methods, other.Method) && (q != p || !slices.Contains(p.methods, r.Method)) {
				return true
			}
		}
	}
	return false
}

// normalPath reports whether every service finds the same segments in a path.
func normalPath(escaped string) bool {
	path, err := url.PathUnescape(escaped)
	if err != nil || !strings.HasPrefix(path, "/") || strings.Contains(path, "//") || !utf8.ValidString(path) ||
		strings.Count(path, "/") != strings.Count(escaped, "/") ||
		strings.ContainsFunc(path, func(r rune) bool { return r < ' ' || r == 0x7f || strings.ContainsRune(`\;?#%`, r) }) {
		return false
	}
	for segment := range strings.SplitSeq(path, "/") {
		if segment == "." || segment == ".." {
			return false
		}
	}
	return true
}

// normalHost returns the form of a host in which it is compared and forwarded.
func normalHost(host string) string {
	host = strings.ToLower(host)
	name, port := host, ""
	if i := strings.LastIndexByte(host, ':'); i > strings.LastIndexByte(host, ']') {
		if name, port = host[:i], host[i:]; port == ":" {
			port = ""
		}
	}
	return strings.TrimSuffix(name, ".") + port
}

// isHost reports whether a host in normal form is a name, an IPv4 address or an IPv6
// address in brackets, with a port or without.
func isHost(host string) bool {
	name, port, _ := strings.Cut(host, ":")
	const hex = "0123456789abcdef"
	if address, rest, bracketed := strings.Cut(host, "]"); bracketed {
		return strings.HasPrefix(address, "[") && strings.Trim(address[1:], hex+":.") == "" && (rest == "" || rest[0] == ':' && isPort(rest[1:]))
	}
	return name != "" && !strings.Contains("."+name+".", "..") && isPort(port) &&
		!strings.ContainsFunc(name, func(r rune) bool {
			return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' && r != '.' && r != '_'
		})
}

func isPort(text string) bool { return strings.Trim(text, "0123456789") == "" }

// hasFieldsOnce reports whether no field stands beside one that decides and could be
// taken for it, and whether the service gets those that decide.
func (p *policy) hasFieldsOnce(h http.Header) bool {
	for name := range h {
		for _, field := range p.fields {
			if name != field && folds(name, field) {
				return false
			}
		}
	}
	for _, list := range h["Connection"] {
		for name := range strings.SplitSeq(list, ",") {
			if slices.ContainsFunc(p.fields, func(field string) bool { return folds(strings.TrimSpace(name), field) }) {
				return false
			}
		}
	}
	return true
}

// folds reports whether two names of fields are one in the environment of a CGI program,
// where every sign is "_" and case does not count.
func folds(a, b string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range len(a) {
		if fold(a[i]) != fold(b[i]) {
			return false
		}
	}
	return true
}

func fold(c byte) byte {
	switch {
	case c >= 'A' && c <= 'Z':
		return c + 'a' - 'A'
	case c >= 'a' && c <= 'z', c >= '0' && c <= '9':
		return c
	}
	return '_'
}

// refuse answers a request that is not in normal form.
func refuse(resp *response, detail string) {
	p := protocol.CodeRequestInvalid.Problem()
	p.Detail = detail
	resp.code = p.Code
	p.Response().Write(resp.Header(), resp)
}

// inDoubt reports whether a proxy in front may have found another end of the request. The
// server does not tell whether a length stood beside the chunks, and knows no chunks in
// HTTP/1.0.
func inDoubt(r *http.Request) bool {
	return !r.ProtoAtLeast(1, 1) || r.ProtoMajor == 1 && len(r.TransferEncoding) > 0
}
