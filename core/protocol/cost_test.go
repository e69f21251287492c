package protocol_test

import (
	"net/http"
	"testing"

	"github.com/reprise-go/reprise/core/protocol"
)

func TestCostFingerprintAllocations(t *testing.T) { //nolint:paralleltest // counts allocations
	if raceEnabled {
		t.Skip("pools are not kept under the race detector; go test without -race counts")
	}
	r := &protocol.Request{Method: "POST", Path: "/v1/tenants/42/orders", RawQuery: "expand=items", Header: http.Header{
		"Content-Type": {"application/json; charset=utf-8"}, "Content-Encoding": {"identity"},
	}}
	body := make([]byte, 64<<10)
	for name, f := range map[string]protocol.Fingerprinter{"default": protocol.DefaultFingerprint, "none": protocol.NoFingerprint} {
		allocs := testing.AllocsPerRun(20, func() {
			if _, err := f(r, "8e03978e-40d5-43dd-bc93-6894a57f9324", body); err != nil {
				t.Fatal(err)
			}
		})
		if allocs != 0 {
			t.Errorf("%s: %v allocations for a body of 64 KiB, want 0", name, allocs)
		}
	}
}
