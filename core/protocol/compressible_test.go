package protocol

import "testing"

// Media types that are compressed already, or a coding, are not compressed again.
func TestWhatIsCompressedAlready(t *testing.T) {
	t.Parallel()
	for media, want := range map[string]bool{
		"": true, "text/html": true, "application/json": true, "application/xml; charset=utf-8": true, "multipart/mixed": true,
		"image/png": false, "IMAGE/JPEG": false, " image/webp ;q=1": false, "image/bmp": true, "image/x-ms-bmp": true, "image/svg+xml": true,
		"audio/mpeg": false, "audio/wav": true, "audio/x-wav": true, "audio/midi": true,
		"video/mp4": false, "font/woff": false, "font/woff2": false, "font/ttf": true,
		"application/zip": false, "application/pdf": false, "application/vnd.rar": false, "application/vnd.apple+zip": false, "application/tree+gzip": false,
		"application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": false, "application/vnd.oasis.opendocument.text": false,
		"application/zipped": true, "application/vnd.oasis.other": true, "text/zip": true,
	} {
		s := stored{fields: []Field{{Name: "content-type", Value: media}}}
		if got := compressible(&s); got != want {
			t.Errorf("%q is compressed: %t, want %t", media, got, want)
		}
	}
	for coding, want := range map[string]bool{"gzip": false, "br": false, "identity": true, " Identity ": true, "": true, "gzip, identity": false} {
		s := stored{fields: []Field{{Name: "Content-Type", Value: "text/html"}, {Name: "Content-Encoding", Value: coding}}}
		if got := compressible(&s); got != want {
			t.Errorf("the coding %q is compressed: %t, want %t", coding, got, want)
		}
	}
	gone := stored{fields: []Field{{Name: "Content-Type", Remove: true}, {Name: "Content-Encoding", Remove: true}}}
	if !compressible(&gone) {
		t.Error("fields that are removed count")
	}
}
