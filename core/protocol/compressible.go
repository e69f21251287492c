package protocol

import "strings"

// compressible reports whether compressing the body of a response is of any use: it is
// not when the body is coded already, or its media type is compressed by itself.
func compressible(s *stored) bool {
	for i := range s.fields {
		f := &s.fields[i]
		if f.Remove {
			continue
		}
		switch {
		case strings.EqualFold(f.Name, "Content-Encoding"):
			if coding := trimSpace(f.Value); coding != "" && !strings.EqualFold(coding, "identity") {
				return false
			}
		case strings.EqualFold(f.Name, "Content-Type"):
			media, _, _ := strings.Cut(f.Value, ";")
			if compressedMedia(strings.ToLower(trimSpace(media))) {
				return false
			}
		}
	}
	return true
}

// compressedMedia reports whether a media type, in lower case, has a compressed form.
func compressedMedia(media string) bool {
	kind, sub, _ := strings.Cut(media, "/")
	switch kind {
	case "image":
		return sub != "bmp" && sub != "x-ms-bmp" && !strings.HasSuffix(sub, "+xml")
	case "audio":
		return sub != "wav" && sub != "x-wav" && sub != "midi"
	case "video":
		return true
	case "font":
		return strings.HasPrefix(sub, "woff")
	case "application":
		switch sub {
		case "zip", "gzip", "x-gzip", "zstd", "x-bzip2", "x-xz", "x-7z-compressed", "vnd.rar", "x-rar-compressed",
			"java-archive", "pdf", "epub+zip":
			return true
		}
		return strings.HasSuffix(sub, "+zip") || strings.HasSuffix(sub, "+gzip") ||
			strings.HasPrefix(sub, "vnd.openxmlformats-officedocument.") || strings.HasPrefix(sub, "vnd.oasis.opendocument.")
	}
	return false
}
