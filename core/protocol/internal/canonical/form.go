package canonical

import (
	"encoding/binary"
	"io"
	"maps"
	"mime/multipart"
	"slices"
)

// AppendForm appends the values and files of a multipart form in a notation that is the
// same for the same parts: it is compared, never parsed. Names are sorted, because a
// framework that parses a form early keeps no order between them. Every part has its
// length before it, so that no two forms look alike.
func AppendForm(dst []byte, form *multipart.Form) ([]byte, error) {
	for _, name := range slices.Sorted(maps.Keys(form.Value)) {
		for _, value := range form.Value[name] {
			dst = appendFormPart(appendFormPart(append(dst, 'v'), name), value)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(form.File)) {
		for _, file := range form.File[name] {
			dst = appendFormPart(append(dst, 'f'), name)
			for _, field := range slices.Sorted(maps.Keys(file.Header)) {
				for _, value := range file.Header[field] {
					dst = appendFormPart(appendFormPart(append(dst, 'h'), field), value)
				}
			}
			var err error
			if dst, err = appendFile(append(dst, 'c'), file); err != nil {
				return dst, err
			}
		}
	}
	return dst, nil
}

func appendFile(dst []byte, file *multipart.FileHeader) ([]byte, error) {
	content, err := file.Open()
	if err != nil {
		return dst, err
	}
	defer content.Close()
	dst = binary.BigEndian.AppendUint32(dst, uint32(file.Size)) //nolint:gosec // the limit of a request bounds it
	start := len(dst)
	dst = slices.Grow(dst, int(file.Size))[:start+int(file.Size)]
	_, err = io.ReadFull(content, dst[start:])
	return dst, err
}

func appendFormPart(dst []byte, part string) []byte {
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(part))) //nolint:gosec // the limit of a request bounds it
	return append(dst, part...)
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
