package syntax

import (
	"strings"
	"testing"
)

func TestValidField(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, value string
		want        bool
	}{
		{"Link", "", true},
		{"Link", "a\tb é\x80\xff", true},
		{"!#$%&'*+-.^_`|~09azAZ", "x", true},
		{"", "x", false},
		{"Li nk", "x", false},
		{"Link:", "x", false},
		{"Trailer:X-Sum", "x", false},
		{"Lin\u212a", "x", false},
		{"@", "x", false},
		{"[", "x", false},
		{"{", "x", false},
		{"Link\r", "x", false},
		{"Link", "a\rb", false},
		{"Link", "a\nb", false},
		{"Link", "a\x00b", false},
		{"Link", "a\r\nSet-Cookie: b=c", false},
	} {
		if got := ValidField(c.name, c.value); got != c.want {
			t.Errorf("ValidField(%q, %q) = %t, want %t", c.name, c.value, got, c.want)
		}
	}
}

// The bytes of a token are spelled out in RFC 9110; every other byte ends or breaks a
// field name.
func TestValidNameKnowsEveryByte(t *testing.T) {
	t.Parallel()
	const token = "!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	for c := range 256 {
		if got, want := ValidName("X"+string([]byte{byte(c)})), strings.IndexByte(token, byte(c)) >= 0; got != want {
			t.Errorf("byte %#02x in a name: valid %t, want %t", c, got, want)
		}
	}
}

func TestPrintableKnowsEveryByte(t *testing.T) {
	t.Parallel()
	for c := range 256 {
		if got, want := Printable("x"+string([]byte{byte(c)})), c >= 0x20 && c <= 0x7e; got != want {
			t.Errorf("byte %#02x: printable %t, want %t", c, got, want)
		}
	}
}

func TestAllowsBodyByStatus(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]bool{103: false, 200: true, 204: false, 205: true, 304: false, 404: true, 999: true} {
		if got := AllowsBody(status); got != want {
			t.Errorf("%d allows a body: %t, want %t", status, got, want)
		}
	}
}

func TestTrimSpaceRemovesSpacesAndTabsOnly(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"": "", " \t": "", " a b\t": "a b", "\na": "\na", "a": "a"} {
		if got := TrimSpace(text); got != want {
			t.Errorf("%q is trimmed to %q, want %q", text, got, want)
		}
	}
}

func TestAppendLowerFoldsASCIIOnly(t *testing.T) {
	t.Parallel()
	if got := string(AppendLower([]byte("X"), "aZ@[É-9")); got != "Xaz@[É-9" {
		t.Errorf("folded to %q", got)
	}
}
