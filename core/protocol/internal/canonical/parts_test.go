package canonical

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io"
	"mime/multipart"
	"slices"
	"testing"
)

// FuzzForm compares the reader of forms with that of the standard library, which Go's
// handlers use: where both read a body as a form, its parts are the same.
func FuzzForm(f *testing.F) {
	for _, body := range []string{
		"--b\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n--b--\r\n",
		"--b\r\n\r\n--b--", "--b--", "--b \t\r\nA:\r\n\r\n\r\n\r\n--b--\r\n", "pre\r\n--b\r\n\r\n\r\n\r\n--b--\r\npost", "--b\r\nA: 1\r\n--b--", "--bb\r\n\r\n--b--",
		"--b\n\n1\n--b--\n", "--b\r\n\r\n1\n--b\r\n\r\n2\r\n--b--", "--b-\r\n--b--", "\r\n--b--\r\n--b--\r\n",
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		var form Form
		if !form.Parse(body, "b") {
			return
		}
		form.Write(sha256.New(), nil) // reads the same parts again
		want, err := standardParts(body)
		if err != nil {
			t.Skip() // such as a field name that the standard library refuses
		}
		var got []string
		var p formPart
		for rest := form.parts; ; {
			after, last, _ := cutDelimiter(rest)
			if last {
				break
			}
			rest, _ = form.next(after, &p)
			got = append(got, string(p.content))
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%q has the contents %q, and %q for the standard library", body, got, want)
		}
	})
}

// standardParts returns the contents of the parts of a body.
func standardParts(body []byte) ([]string, error) {
	var list []string
	for r := multipart.NewReader(bytes.NewReader(body), "b"); ; {
		part, err := r.NextRawPart()
		if errors.Is(err, io.EOF) {
			return list, nil
		}
		if err != nil {
			return nil, err
		}
		content, err := io.ReadAll(part)
		if err != nil {
			return nil, err
		}
		list = append(list, string(content))
	}
}
