package protocol

import (
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
