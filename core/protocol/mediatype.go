package protocol

import (
	"strings"

	"github.com/reprise-go/reprise/core/internal/syntax"
	"github.com/reprise-go/reprise/core/protocol/internal/canonical"
)

// isJSON reports whether r has a Content-Type, and every line of it is a JSON type.
func isJSON(r *Request) bool {
	lines := r.values("Content-Type")
	for _, line := range lines {
		var stack [64]byte
		lower := string(syntax.AppendLower(stack[:0], syntax.MediaType(line)))
		if lower != "application/json" && lower != "text/json" && !strings.HasSuffix(lower, "+json") {
			return false
		}
	}
	return len(lines) > 0
}

// isMultipart reports whether a Content-Type of r is one of bodies in parts.
func isMultipart(r *Request) bool {
	for _, line := range r.values("Content-Type") {
		const prefix = "multipart/"
		if media := syntax.MediaType(line); len(media) >= len(prefix) && strings.EqualFold(media[:len(prefix)], prefix) {
			return true
		}
	}
	return false
}

// hasUncomparedParts reports whether a body in parts is compared with its boundary, which
// clients choose anew for each request.
func hasUncomparedParts(r *Request, body []byte) bool {
	if r.notation || !isMultipart(r) {
		return false
	}
	var form canonical.Form
	return !parseForm(r, body, &form)
}

// parseForm reports whether the body of r is a multipart form, and reads it.
func parseForm(r *Request, body []byte, form *canonical.Form) bool {
	boundary, ok := formBoundary(r)
	return ok && form.Parse(body, boundary)
}

// formBoundary returns the boundary of a request whose body may be a multipart form. ok
// is false if it has another Content-Type, or more than one, or a content coding, or if
// any reader could find another boundary: a parameter is malformed, there is more than
// one boundary, or it is not 1 to 70 bytes of those of RFC 2046, section 5.1.1.
func formBoundary(r *Request) (boundary string, ok bool) {
	lines := r.values("Content-Type")
	if len(lines) != 1 || !strings.EqualFold(syntax.MediaType(lines[0]), "multipart/form-data") || r.isCoded() {
		return "", false
	}
	_, rest, more := strings.Cut(lines[0], ";")
	for more {
		var name, value string
		if name, value, rest, more, ok = syntax.CutParameter(rest); !ok {
			return "", false
		}
		const prefix = "boundary" // and also "boundary*0" of RFC 2231
		if len(name) < len(prefix) || !strings.EqualFold(name[:len(prefix)], prefix) {
			continue
		}
		if len(name) > len(prefix) || boundary != "" || !validBoundary(value) {
			return "", false
		}
		boundary = value
	}
	return boundary, boundary != ""
}

var boundaryBytes = syntax.NewByteSet("'()+_,-./:=? ")

func validBoundary(text string) bool {
	return text != "" && len(text) <= canonical.MaxBoundary && !strings.HasSuffix(text, " ") && boundaryBytes.HaveAll(text)
}
