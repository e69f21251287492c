package stack

import (
	"bytes"
	"compress/gzip"
	"strings"
)

// The bodies of the kinds, the same for every framework.
var (
	Text       = strings.Repeat("All tickets of row seven. ", 160)
	Untyped    = []byte("<html><body>a page without a media type</body></html>")
	Declared   = strings.Repeat("length ", 64)
	Parts      = []string{"data: one\n\n", "data: two\n\n", "data: three\n\n"}
	Copied     = strings.Repeat("0123456789", 5000)
	Large      = strings.Repeat("large", 20_000) // written three times
	Compressed = zip("a body that was compressed by its handler")
)

func zip(text string) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write([]byte(text))
	_ = w.Close()
	return b.Bytes()
}
