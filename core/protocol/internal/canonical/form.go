package canonical

import (
	"encoding/binary"
	"io"
	"maps"
	"mime/multipart"
	"slices"
	"strings"

	"github.com/reprise-go/reprise/core/internal/digest"
)

// AppendForm appends the notation of a form that a framework parsed, as [Form.Write]
// writes that of its bytes, as far as a [multipart.Form] tells it: the values come
// first, and values and files are sorted by their names, because the order between names
// is unknown. So are the preamble, the epilogue, the parts without a name, and the fields
// of a value other than its name.
func AppendForm(dst []byte, form *multipart.Form) ([]byte, error) {
	dst = digest.AppendPart(digest.AppendPart(dst, ""), "")
	for _, name := range slices.Sorted(maps.Keys(form.Value)) {
		for _, value := range form.Value[name] {
			dst = appendNames(dst, name)
			dst = binary.BigEndian.AppendUint64(dst, 0)
			dst = digest.AppendPart(dst, value)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(form.File)) {
		for _, file := range form.File[name] {
			dst = appendFileHeader(dst, name, file)
			var err error
			if dst, err = appendFile(dst, file); err != nil {
				return dst, err
			}
		}
	}
	return dst, nil
}

// escaped writes a name as it stands between quotes.
var escaped = strings.NewReplacer(`\`, `\\`, `"`, `\"`)

// appendNames appends the disposition of a part with a name and maybe a file name.
func appendNames(dst []byte, name string, files ...string) []byte {
	dst = digest.AppendPart(dst, "form-data")
	dst = binary.BigEndian.AppendUint64(dst, uint64(1+len(files)))
	dst = digest.AppendPart(digest.AppendPart(dst, "name"), escaped.Replace(name))
	for _, file := range files {
		dst = digest.AppendPart(digest.AppendPart(dst, "filename"), escaped.Replace(file))
	}
	return dst
}

func appendFileHeader(dst []byte, name string, file *multipart.FileHeader) []byte {
	var fields []partField
	for _, field := range slices.Sorted(maps.Keys(file.Header)) {
		for _, value := range file.Header[field] {
			fields = append(fields, partField{[]byte(field), []byte(value)})
		}
	}
	if len(fields) == 0 { // the framework keeps no header
		return binary.BigEndian.AppendUint64(appendNames(dst, name, file.Filename), 0)
	}
	slices.SortStableFunc(fields, comparePartFields)
	return appendHeader(dst, fields)
}

func appendFile(dst []byte, file *multipart.FileHeader) ([]byte, error) {
	content, err := file.Open()
	if err != nil {
		return dst, err
	}
	defer content.Close()
	dst = binary.BigEndian.AppendUint64(dst, uint64(file.Size)) //nolint:gosec // the limit of a request bounds it
	start := len(dst)
	dst = slices.Grow(dst, int(file.Size))[:start+int(file.Size)]
	_, err = io.ReadFull(content, dst[start:])
	return dst, err
}

// FormSize returns how long the notation of form is at least, so that a form over the
// limit is refused before its files are read.
func FormSize(form *multipart.Form) (size int64) {
	for name, values := range form.Value {
		for _, value := range values {
			size += int64(len(name) + len(value))
		}
	}
	for _, files := range form.File {
		for _, file := range files {
			size += file.Size
		}
	}
	return size
}
