package safe_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/reprise-go/reprise/cmd/reprise/internal/safe"
)

func TestControlCharactersAreEscaped(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ in, field string }{
		"plain":                {"order 17 paid", "order 17 paid"},
		"escape sequence":      {"\x1b[2J\x1b]0;title\x07", `\x1b[2J\x1b]0;title\x07`},
		"clipboard":            {"\x1b]52;c;cm0gLXJmIH4=\x1b\\", `\x1b]52;c;cm0gLXJmIH4=\x1b\`},
		"line ends":            {"a\r\nb\tc", `a\r\nb\tc`},
		"C1 as a byte":         {"\x9b2J", `\x9b2J`},
		"C1 as a character":    {"\u009b2J", `\u009b2J`},
		"delete, null":         {"a\x7f\x00", `a\x7f\x00`},
		"right-to-left marks":  {"\u202egnp.exe\u2066x\u2069", `\u202egnp.exe\u2066x\u2069`},
		"right-to-left script": {"שלום", `\u05e9\u05dc\u05d5\u05dd`},
		"zero width":           {"pay\u200bpal\ufeff", `pay\u200bpal\ufeff`},
		"line separator":       {"a\u2028b", `a\u2028b`},
		"tag characters":       {"a\U000e0041", `a\U000e0041`},
		"blank letters":        {"a\u3164b\u2800", `a\u3164b\u2800`},
		"no UTF-8":             {"\xff\xc3", `\xff\xc3`},
		"surrogate":            {"\xed\xa0\x80", `\xed\xa0\x80`},
		"marks in a row":       {"e" + strings.Repeat("\u0301", 6), "e" + strings.Repeat("\u0301", 4) + `\u0301\u0301`},
		"other scripts":        {"Köln 東京 😀", "Köln 東京 😀"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := safe.Field(c.in); got != c.field {
				t.Errorf("Field(%q) is %q, want %q", c.in, got, c.field)
			}
		})
	}
	if got, want := safe.Text("a\nb\tc\r"), "a\nb\tc\\r"; got != want {
		t.Errorf("Text is %q, want %q", got, want)
	}
}

func TestFoldKeepsTheLinesApart(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"":                              "",
		"one line":                      "one line",
		"\n a \r\n\tb\n":                "a; b",
		"unknown\n\nMeant?\n\tx\n\ty\n": "unknown. Meant? x; y",
		"failed:\n\ta: no\n\tb: no":     "failed: a: no; b: no",
	} {
		if got := safe.Fold(in); got != want {
			t.Errorf("Fold(%q) is %q, want %q", in, got, want)
		}
	}
}

func TestWriterEscapesAcrossWrites(t *testing.T) {
	t.Parallel()
	const text = "a\x1b[31m é 東 😀 \u202e \xff\xf0\x9f\x98 end \xe6\x9d"
	want := safe.Text(text)
	for cut := range len(text) {
		if got := written(t, text[:cut], text[cut:]); got != want {
			t.Errorf("cut at %d: %q, want %q", cut, got, want)
		}
	}
	var pieces []string
	for i := range len(text) {
		pieces = append(pieces, text[i:i+1])
	}
	if got := written(t, pieces...); got != want {
		t.Errorf("byte by byte: %q, want %q", got, want)
	}
}

func FuzzWriter(f *testing.F) {
	f.Add("a\x1b[2J\u202e\xff", 2)
	f.Add("\xf0\x9f\x98\x80\u009b", 1)
	f.Add("\u009b2J \u202e \x7f \U000e0041 é東😀 \x1b[2J a\nb", 3)
	f.Fuzz(func(t *testing.T, text string, cut int) {
		cut = min(max(cut, 0), len(text))
		got := written(t, text[:cut], text[cut:])
		if want := safe.Text(text); got != want {
			t.Errorf("cut at %d: %q, want %q", cut, got, want)
		}
		harmless(t, got, "\n\t")
		harmless(t, safe.Field(text), "")
		if safe.Text(got) != got {
			t.Errorf("%q is escaped twice: %q", got, safe.Text(got))
		}
		if encoded, err := json.Marshal(text); err == nil {
			clean := safe.JSON(encoded)
			harmless(t, string(clean), "\n")
			if !safe.Clean(string(clean)) {
				t.Errorf("%q has something that a terminal obeys", clean)
			}
			var before, after string
			if json.Unmarshal(encoded, &before) != nil || json.Unmarshal(clean, &after) != nil || before != after {
				t.Errorf("%q stands for %q, want %q", clean, after, before)
			}
		}
	})
}

// harmless checks, without the tables of the code, that no forbidden character reaches a
// terminal.
func harmless(t *testing.T, text, allowed string) {
	t.Helper()
	if !utf8.ValidString(text) {
		t.Errorf("%q is not UTF-8", text)
	}
	for _, r := range text {
		switch {
		case strings.ContainsRune(allowed, r):
		case r < ' ', r >= 0x7f && r <= 0x9f, r >= 0x200b && r <= 0x200f, r >= 0x2028 && r <= 0x202e, r >= 0x2060 && r <= 0x206f, r == 0xfeff, r == 0x61c:
			t.Errorf("%q contains %U", text, r)
		}
	}
}

// written returns the output of a writer for the pieces.
func written(t *testing.T, pieces ...string) string {
	t.Helper()
	var b bytes.Buffer
	w := safe.NewWriter(&b)
	for _, p := range pieces {
		if n, err := w.Write([]byte(p)); n != len(p) || err != nil {
			t.Fatalf("Write wrote %d of %d bytes, %v", n, len(p), err)
		}
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}
