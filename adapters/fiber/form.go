package reprisefiber

import (
	"encoding/binary"
	"io"
	"maps"
	"mime/multipart"
	"slices"

	"github.com/gofiber/fiber/v2"
)

// isParsed reports whether fasthttp parsed the body as a multipart form while it read it, under the conditions of its own.
// Its bytes are gone then, and what Body makes of the form has another order each time.
func isParsed(c *fiber.Ctx) bool {
	h := &c.Request().Header
	return len(h.MultipartFormBoundary()) > 0 && h.ContentLength() > 0 && len(h.ContentEncoding()) == 0 &&
		!c.App().Server().DisablePreParseMultipartForm
}

// readForm reads the form in a notation that is the same for the same parts: it is made to be compared, not parsed. It is shorter than
// the body was. The form itself is left to the handler.
func (in *input) readForm(p []byte) (int, error) {
	if in.form == nil {
		form, err := in.c.Request().MultipartForm()
		if err != nil {
			return 0, err
		}
		if in.form, err = appendForm([]byte{}, form); err != nil {
			return 0, err
		}
	}
	if len(in.form) == 0 {
		return 0, io.EOF
	}
	n := copy(p, in.form)
	in.form = in.form[n:]
	return n, nil
}

// appendForm appends the fields and files of form, sorted by name. Every part has its length before it, so that no two forms
// look alike.
func appendForm(dst []byte, form *multipart.Form) ([]byte, error) {
	for _, name := range slices.Sorted(maps.Keys(form.Value)) {
		for _, value := range form.Value[name] {
			dst = appendPart(appendPart(append(dst, 'v'), name), value)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(form.File)) {
		for _, file := range form.File[name] {
			dst = appendPart(append(dst, 'f'), name)
			for _, field := range slices.Sorted(maps.Keys(file.Header)) {
				for _, value := range file.Header[field] {
					dst = appendPart(appendPart(append(dst, 'h'), field), value)
				}
			}
			var err error
			if dst, err = appendFile(append(dst, 'c'), file); err != nil {
				return nil, err
			}
		}
	}
	return dst, nil
}

func appendFile(dst []byte, file *multipart.FileHeader) ([]byte, error) {
	content, err := file.Open()
	if err != nil {
		return nil, err
	}
	defer content.Close()
	dst = binary.BigEndian.AppendUint32(dst, uint32(file.Size)) //nolint:gosec // the limit of a request bounds it
	start := len(dst)
	dst = slices.Grow(dst, int(file.Size))[:start+int(file.Size)]
	_, err = io.ReadFull(content, dst[start:])
	return dst, err
}

func appendPart(dst []byte, part string) []byte {
	return append(binary.BigEndian.AppendUint32(dst, uint32(len(part))), part...) //nolint:gosec // likewise
}
