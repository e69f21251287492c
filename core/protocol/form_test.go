package protocol

import (
	"fmt"
	"mime/multipart"
	"slices"
	"strings"
	"testing"

	"github.com/reprise-go/reprise/core/internal/syntax"
	"github.com/reprise-go/reprise/core/protocol/internal/canonical"
)

// formPart is a part of a form: its header lines without the last line end, and its
// content.
type formPart struct{ header, content string }

// value is a part as clients send a value, and file one as they send a file.
func value(name, content string) formPart {
	return formPart{`Content-Disposition: form-data; name="` + name + `"`, content}
}

func file(name, file, media, content string) formPart {
	return formPart{fmt.Sprintf("Content-Disposition: form-data; name=%q; filename=%q\r\nContent-Type: %s", name, file, media), content}
}

// body returns the bytes of a form.
func formBody(boundary string, parts ...formPart) string {
	var b strings.Builder
	for _, p := range parts {
		b.WriteString("--" + boundary + "\r\n")
		if p.header != "" {
			b.WriteString(p.header + "\r\n")
		}
		b.WriteString("\r\n" + p.content + "\r\n")
	}
	b.WriteString("--" + boundary + "--\r\n")
	return b.String()
}

// upload is a request whose body has a boundary.
func upload(boundary string, fields ...string) Request {
	h := lines{"Content-Type": {"multipart/form-data; boundary=" + boundary}}
	for i := 0; i+1 < len(fields); i += 2 {
		h[fields[i]] = []string{fields[i+1]}
	}
	return Request{Method: "POST", Path: "/upload", Header: h}
}

// What is not a form, or may be two, is compared by its bytes: another boundary is
// another request. What only looks unusual is compared by its parts.
func TestR21cUnusualForms(t *testing.T) {
	t.Parallel()
	whole := func(b string) string { return formBody(b, value("a", "1"), value("b", "2")) }
	edit := func(f func(b, body string) string) func(string) string {
		return func(b string) string { return f(b, whole(b)) }
	}
	tooMany := strings.Repeat("X-A: 1\r\n", 16)
	for name, c := range map[string]struct {
		body  func(boundary string) string
		parts bool // compared by its parts
	}{
		"a form":        {whole, true},
		"no parts":      {func(b string) string { return formBody(b) }, true},
		"unnamed parts": {func(b string) string { return formBody(b, formPart{"", "x"}, formPart{"X-A: 1", "y"}) }, true},
		"10,000 parts":  {func(b string) string { return formBody(b, slices.Repeat([]formPart{value("a", "1")}, 10_000)...) }, true},
		"a preamble":    {edit(func(_, s string) string { return "preamble\r\n" + s }), true},
		"an epilogue":   {edit(func(_, s string) string { return s + "epilogue" }), true},
		"a field twice": {edit(func(_, s string) string { return strings.Replace(s, "\r\n\r\n", "\r\nX-A: 1\r\nX-A: 2\r\n\r\n", 1) }), true},
		"a nested form": {func(b string) string { return formBody(b, nested("inner"), value("a", "1")) }, true},
		"a coded part": {edit(func(_, s string) string {
			return strings.Replace(s, "\r\n\r\n", "\r\nContent-Transfer-Encoding: base64\r\n\r\n", 1)
		}), true},
		"a bare file name": {edit(func(_, s string) string { return strings.Replace(s, `name="a"`, `name="a"; filename=a b.txt`, 1) }), true},

		"empty":                      {func(string) string { return "" }, true}, // the boundary of a body that has none does not count
		"no delimiter":               {func(string) string { return "a=1" }, true},
		"another boundary":           {func(string) string { return whole("of-another") }, true},
		"no last delimiter":          {edit(func(b, s string) string { return strings.TrimSuffix(s, "--"+b+"--\r\n") }), false},
		"a last one without dashes":  {edit(func(_, s string) string { return strings.TrimSuffix(s, "--\r\n") + "\r\n" }), false},
		"text behind a delimiter":    {edit(func(b, s string) string { return strings.Replace(s, "--"+b+"\r\n", "--"+b+" x\r\n", 1) }), false},
		"text behind the last one":   {edit(func(_, s string) string { return strings.TrimSuffix(s, "\r\n") + "x\r\n" }), false},
		"a preamble without an end":  {edit(func(_, s string) string { return "preamble" + s }), false},
		"another form behind it":     {edit(func(_, s string) string { return s + s }), false},
		"a boundary in the content":  {func(b string) string { return formBody(b, value("a", "x--"+b+"x")) }, false},
		"a boundary behind one LF":   {func(b string) string { return formBody(b, value("a", "x\n--"+b)) }, false},
		"lines that end in LF":       {edit(func(_, s string) string { return strings.ReplaceAll(s, "\r\n", "\n") }), false},
		"a header without an end":    {edit(func(_, s string) string { return strings.Replace(s, "\r\n\r\n1", "", 1) }), false},
		"a folded line":              {edit(func(_, s string) string { return strings.Replace(s, "form-data; ", "form-data;\r\n ", 1) }), false},
		"a line without a colon":     {edit(func(_, s string) string { return strings.Replace(s, "\r\n\r\n", "\r\nX-A\r\n\r\n", 1) }), false},
		"a line with a NUL":          {edit(func(_, s string) string { return strings.Replace(s, "\r\n\r\n", "\r\nX-A: \x00\r\n\r\n", 1) }), false},
		"a line with a CR":           {edit(func(_, s string) string { return strings.Replace(s, "\r\n\r\n", "\r\nX-A: \r\r\n\r\n", 1) }), false},
		"more fields than are sent":  {edit(func(_, s string) string { return strings.Replace(s, "Content", tooMany+"Content", 1) }), false},
		"nested with its own choice": {func(b string) string { return formBody(b, nested(b+"inner")) }, false},
	} {
		first, second := digestOf(t, DefaultFingerprint, upload("first"), "k", c.body("first")), digestOf(t, DefaultFingerprint, upload("second"), "k", c.body("second"))
		if (first == second) != c.parts {
			t.Errorf("%s: another boundary is the same request: %t, want %t", name, first == second, c.parts)
		}
	}
}

// nested is a part that is itself in parts.
func nested(boundary string) formPart {
	return formPart{"Content-Disposition: form-data; name=\"n\"\r\nContent-Type: multipart/mixed; boundary=" + boundary, formBody(boundary, value("x", "1"))}
}

// The boundary is 1 to 70 bytes of those of RFC 2046, and it is the only one.
func TestR21cBoundaries(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		boundary string
		line     string // %s is the boundary
		coding   string
		parts    bool
	}{
		"1 byte":               {boundary: "b", parts: true},
		"70 bytes":             {boundary: strings.Repeat("b", 70), parts: true},
		"71 bytes":             {boundary: strings.Repeat("b", 71)},
		"every byte of a name": {boundary: "0aZ'()+_-./:=?", line: `multipart/form-data; boundary="%s"`, parts: true},
		"an = without quotes":  {boundary: "----=_Part_1_2.3", parts: true},
		"a space inside":       {boundary: "a b", line: `multipart/form-data; boundary="%s"`, parts: true},
		"a space at the end":   {boundary: "a ", line: `multipart/form-data; boundary="%s"`},
		"a space, no quotes":   {boundary: "a b"},
		"another byte":         {boundary: "a*b"},
		"none":                 {boundary: "b", line: "multipart/form-data"},
		"an empty one":         {boundary: "", line: `multipart/form-data; boundary="%s"`},
		"two":                  {boundary: "b", line: "multipart/form-data; boundary=%[1]s; boundary=%[1]s"},
		"two, one in parts":    {boundary: "b", line: "multipart/form-data; boundary=%[1]s; boundary*0=x"},
		"an open quote":        {boundary: "b", line: `multipart/form-data; boundary=%s; x="`},
		"a second parameter":   {boundary: "b", line: `multipart/form-data; x="; boundary=x"; boundary=%s`, parts: true},
		"no value":             {boundary: "b", line: `multipart/form-data; boundary=%s; x`},
		"another type":         {boundary: "b", line: "multipart/mixed; boundary=%s"},
		"a longer type":        {boundary: "b", line: "multipart/form-data2; boundary=%s"},
		"a coding":             {boundary: "b", coding: "gzip"},
		"no coding":            {boundary: "b", coding: "identity", parts: true},
	} {
		r := upload(c.boundary)
		if c.line != "" {
			line := c.line
			if strings.Contains(line, "%") {
				line = fmt.Sprintf(line, c.boundary)
			}
			r.Header.(lines)["Content-Type"] = []string{line}
		}
		if c.coding != "" {
			r.Header.(lines)["Content-Encoding"] = []string{c.coding}
		}
		spaced := strings.Replace(formBody(c.boundary, value("a", "1")), ": ", ":", 1) // of one form
		if same := digestOf(t, DefaultFingerprint, r, "k", spaced) == digestOf(t, DefaultFingerprint, r, "k", formBody(c.boundary, value("a", "1"))); same != c.parts {
			t.Errorf("%s: compared by its parts: %t, want %t", name, same, c.parts)
		}
	}
	r := upload("b")
	r.Header.(lines)["Content-Type"] = append(r.Header.(lines)["Content-Type"], "multipart/form-data; boundary=b")
	if digestOf(t, DefaultFingerprint, r, "k", formBody("b")) == digestOf(t, DefaultFingerprint, r, "k", "\r\n"+formBody("b")) {
		t.Error("two types: compared by its parts")
	}
}

// A framework that parsed a form tells its names, values and files: one whose parts have
// the order of their names, the values first, is the same request as its bytes.
func TestR21cParsedFormsAreComparedAsFarAsTheyAreKnown(t *testing.T) {
	t.Parallel()
	odd := formPart{`Content-Disposition: form-data; name="q\"\\"`, "3"}
	for name, c := range map[string]struct {
		parts []formPart
		same  bool
	}{
		"a file":                       {[]formPart{file("f", "x.txt", "text/plain", "file")}, true},
		"a file with fields":           {[]formPart{{file("f", `a\b"`, "text/plain; charset=utf-8", "").header + "\r\nContent-Transfer-Encoding: base64\r\nX-B: 1\r\nX-A: 2\r\nX-B: 3", "file"}}, true},
		"values and a file":            {[]formPart{value("a", "1"), value("a", "2"), odd, file("b", "x", "text/plain", "file")}, true},
		"no parts":                     {nil, true},
		"another order of names":       {[]formPart{value("b", "1"), value("a", "2")}, false},
		"the file first":               {[]formPart{file("a", "x", "text/plain", "file"), value("b", "1")}, false},
		"a value with a type":          {[]formPart{{value("a", "").header + "\r\nContent-Type: application/json", "1"}}, false},
		"a part without a name":        {[]formPart{{"", "1"}, value("a", "1")}, false},
		"an empty file name":           {[]formPart{file("f", "", "text/plain", "file")}, false},
		"a coding that Go has decoded": {[]formPart{{file("f", "x", "text/plain", "").header + "\r\nContent-Transfer-Encoding: quoted-printable", "a=3Db"}}, false},
	} {
		body := formBody("b", c.parts...)
		notation := must(canonical.AppendForm(nil, must(multipart.NewReader(strings.NewReader(body), "b").ReadForm(1<<20))))
		parsed := upload("b")
		parsed.notation = true
		same := digestOf(t, DefaultFingerprint, parsed, "k", string(notation)) == digestOf(t, DefaultFingerprint, upload("b"), "k", body)
		if same != c.same {
			t.Errorf("%s: parsed and as bytes are one request: %t, want %t", name, same, c.same)
		}
	}
}

// FuzzFormsInjective draws two forms, each from a text whose lines are its parts, and
// gives each a different boundary: they have one fingerprint if their parts are equal.
func FuzzFormsInjective(f *testing.F) {
	f.Add("a\x1f\x1f\x1f1\x1eb\x1fx\x1ftext/plain\x1f2", "a\x1f\x1f\x1f1\x1eb\x1fx\x1ftext/plain\x1f2", "one", "two")
	f.Add("a\x1f\x1f\x1f1", "a\x1f\x1f\x1f", "one", "one")
	f.Add("a\x1f\x1f\x1f\r\n--two\r\n", "a\x1f\x1f\x1f", "one", "two")
	f.Add("ab\x1fc\x1f\x1f", "a\x1fbc\x1f\x1f", "b", "bb")
	f.Add("\x1f\x1f\x1f\x00\x00\x00\x00\x00\x00\x00\x01", "", "-", "--")
	f.Fuzz(func(t *testing.T, first, second, boundary1, boundary2 string) {
		a, b := drawForm(first), drawForm(second)
		if !drawable(boundary1, a) || !drawable(boundary2, b) {
			t.Skip()
		}
		same := digestOf(t, DefaultFingerprint, quotedUpload(boundary1), "k", formBody(boundary1, a...)) ==
			digestOf(t, DefaultFingerprint, quotedUpload(boundary2), "k", formBody(boundary2, b...))
		if want := fmt.Sprint(a) == fmt.Sprint(b); same != want {
			t.Fatalf("%q and %q: one fingerprint is %t", a, b, same)
		}
	})
}

// drawForm makes parts of the lines of a text: each has a name, a file name, a type and a
// content.
func drawForm(text string) []formPart {
	var parts []formPart
	for line := range strings.SplitSeq(text, "\x1e") {
		list := append(strings.SplitN(line, "\x1f", 4), "", "", "")
		name, fileName, media, content := list[0], list[1], list[2], list[3]
		header := fmt.Sprintf("Content-Disposition: form-data; name=%q", name)
		if fileName != "" {
			header += fmt.Sprintf("; filename=%q", fileName)
		}
		if media = strings.ToLower(syntax.MediaType(strings.ToValidUTF8(media, ""))); media != "" && syntax.Printable(media) {
			header += "\r\nContent-Type: " + media
		}
		parts = append(parts, formPart{header, content})
	}
	return parts
}

// drawable reports whether the parts can be sent with this boundary.
func drawable(boundary string, parts []formPart) bool {
	for _, p := range parts {
		if strings.Contains(p.header+"\r\n\r\n"+p.content, "--"+boundary) || strings.HasSuffix(p.content, "-") {
			return false
		}
	}
	return validBoundary(boundary)
}

func quotedUpload(boundary string) Request { return upload(`"` + boundary + `"`) }
