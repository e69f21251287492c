package canonical

import (
	"bytes"
	"fmt"
	"io"
	"mime/multipart"
	"net/textproto"
	"strings"
	"testing"
)

// testPart is a part of a form: a value, or a file where it has a file name.
type testPart struct{ name, file, content string }

// notation returns the notation of AppendForm for a form with these parts.
func notation(t *testing.T, parts ...testPart) string {
	t.Helper()
	var body bytes.Buffer
	w := multipart.NewWriter(&body)
	for _, p := range parts {
		disposition := fmt.Sprintf("form-data; name=%q", p.name)
		if p.file != "" {
			disposition += fmt.Sprintf("; filename=%q", p.file)
		}
		part := must(w.CreatePart(textproto.MIMEHeader{"Content-Disposition": {disposition}}))
		must(io.WriteString(part, p.content))
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	size := body.Len()
	form := must(multipart.NewReader(&body, w.Boundary()).ReadForm(1 << 20))
	got := must(AppendForm(nil, form))
	if len(got) > 2*size {
		t.Errorf("the notation has %d bytes, the body had %d", len(got), size)
	}
	return string(got)
}

func TestR24EqualFormsHaveOneNotation(t *testing.T) {
	t.Parallel()
	a, b, f := testPart{name: "a", content: "1"}, testPart{name: "b", content: "2"}, testPart{name: "f", file: "f.txt", content: "file"}
	want := notation(t, a, b, f)
	for range 20 { // the fields of a form are in a map
		if got := notation(t, f, b, a); got != want {
			t.Fatalf("the order of names matters: %q, %q", got, want)
		}
	}
}

func TestR24DifferentFormsHaveDifferentNotations(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for _, parts := range [][]testPart{
		{},
		{{name: "a"}},
		{{name: "a", content: "1"}},
		{{name: "a", content: "1"}, {name: "a", content: "2"}},
		{{name: "a", content: "2"}, {name: "a", content: "1"}}, // the order of one name counts
		{{name: "a", content: "12"}},
		{{name: "a1", content: "2"}},
		{{name: "a", content: "1"}, {name: "b", content: "1"}},
		{{name: "a", file: "x", content: "1"}},
		{{name: "a", file: "y", content: "1"}},
		{{name: "a", file: "x", content: "2"}},
		{{name: "a", file: "x", content: "1"}, {name: "a", file: "x", content: "1"}},
		{{name: "a", content: "1" + strings.Repeat("\x00", 8)}},
	} {
		got := notation(t, parts...)
		if other, double := seen[got]; double {
			t.Errorf("%v looks like %s", parts, other)
		}
		seen[got] = fmt.Sprint(parts)
	}
}
