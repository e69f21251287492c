package protocol

import (
	"slices"
	"testing"

	"github.com/reprise-go/reprise/core/protocol/internal/record"
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
	s, err := record.Decode[Field](record.Append(nil, &stored{Status: 200, Fields: fields}))
	if err != nil {
		t.Fatalf("Decode: %v", err)
	}
	return map[string]Header{"built": NewHeader(fields...), "stored": {stored: s.Header}}
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

// A byte that would end a line becomes a space, anywhere in a value.
func TestLineBytesOfAValueBecomeSpaces(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{
		"": "", "plain": "plain", "\r": " ", "\n": " ", "\x00": " ", "\x00a": " a", "\ra": " a", "\na": " a", "a\x00": "a ", "a\r\nb": "a  b", "\t\x01": "\t\x01",
	} {
		if got := cleanValue(value); got != want {
			t.Errorf("%q becomes %q, want %q", value, got, want)
		}
	}
}
