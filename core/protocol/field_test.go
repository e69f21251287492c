package protocol

import (
	"slices"
	"strings"
	"testing"
)

var sampleFields = []Field{
	{Name: "Content-Type", Value: "application/json"},
	{Name: "Link", Value: "</a>"},
	{Name: "Link", Value: "</b>", Add: true},
	{Name: "X-Empty", Value: ""},
}

// headerForms returns the header of fields in both forms: as built and as read from a
// stored response.
func headerForms(t *testing.T, fields []Field) map[string]Header {
	t.Helper()
	s, err := decodeStored(appendStored(nil, &stored{status: 200, fields: fields}))
	if err != nil {
		t.Fatalf("decodeStored: %v", err)
	}
	return map[string]Header{"built": NewHeader(fields...), "stored": s.header}
}

func TestHeaderKeepsOrderAndMultiplicity(t *testing.T) {
	t.Parallel()
	for form, h := range headerForms(t, sampleFields) {
		if got := slices.Collect(h.All()); !slices.Equal(got, sampleFields) {
			t.Errorf("%s: All gives %v, want %v", form, got, sampleFields)
		}
		if h.Len() != len(sampleFields) {
			t.Errorf("%s: Len is %d, want %d", form, h.Len(), len(sampleFields))
		}
	}
}

func TestHeaderStopsWhenAsked(t *testing.T) {
	t.Parallel()
	for form, h := range headerForms(t, sampleFields) {
		for n := range sampleFields {
			seen := 0
			for range h.All() {
				if seen++; seen > n {
					break
				}
			}
			if seen != n+1 {
				t.Errorf("%s: saw %d fields before the break, want %d", form, seen, n+1)
			}
		}
	}
}

func TestHeaderGetIgnoresCase(t *testing.T) {
	t.Parallel()
	for form, h := range headerForms(t, sampleFields) {
		if v, ok := h.Get("lINK"); v != "</a>" || !ok {
			t.Errorf("%s: Get(lINK) = %q, %t; want the first value", form, v, ok)
		}
		if v, ok := h.Get("x-empty"); v != "" || !ok {
			t.Errorf("%s: Get(x-empty) = %q, %t; want an empty value that is there", form, v, ok)
		}
		if v, ok := h.Get("Lin"); ok {
			t.Errorf("%s: Get(Lin) = %q, want none", form, v)
		}
	}
}

func TestZeroHeaderIsEmpty(t *testing.T) {
	t.Parallel()
	var h Header
	for f := range h.All() {
		t.Errorf("unexpected field %v", f)
	}
	if _, ok := h.Get("Link"); ok || h.Len() != 0 {
		t.Errorf("the zero header has %d fields", h.Len())
	}
}

func TestNewHeaderCopiesItsFields(t *testing.T) {
	t.Parallel()
	fields := slices.Clone(sampleFields)
	h := NewHeader(fields...)
	fields[0].Value = "changed"
	if v, _ := h.Get("Content-Type"); v != "application/json" {
		t.Errorf("Get(Content-Type) = %q after the caller changed its slice", v)
	}
}

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
		if got := validField(c.name, c.value); got != c.want {
			t.Errorf("validField(%q, %q) = %t, want %t", c.name, c.value, got, c.want)
		}
	}
}

// The bytes of a token are spelled out in RFC 9110; every other byte ends or breaks a
// field name.
func TestValidNameKnowsEveryByte(t *testing.T) {
	t.Parallel()
	const token = "!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	for c := range 256 {
		if got, want := validName("X"+string([]byte{byte(c)})), strings.IndexByte(token, byte(c)) >= 0; got != want {
			t.Errorf("byte %#02x in a name: valid %t, want %t", c, got, want)
		}
	}
}

func TestHeaderAllDoesNotAllocate(t *testing.T) {
	for form, h := range headerForms(t, sampleFields) {
		total := 0
		allocs := testing.AllocsPerRun(100, func() {
			for f := range h.All() {
				total += len(f.Name) + len(f.Value)
			}
			if v, ok := h.Get("link"); ok {
				total += len(v)
			}
		})
		if allocs != 0 || total == 0 {
			t.Errorf("%s: %v allocations to go over a header, want 0", form, allocs)
		}
	}
}

// What would end a line becomes a space, wherever in a value it stands.
func TestLineBytesOfAValueBecomeSpaces(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{
		"": "", "plain": "plain", "\r": " ", "\n": " ", "\x00": " ", "\x00a": " a", "\ra": " a", "\na": " a", "a\x00": "a ", "a\r\nb": "a  b", "\t\x01": "\t\x01",
	} {
		if got := CleanValue(value); got != want {
			t.Errorf("%q becomes %q, want %q", value, got, want)
		}
	}
}
