package protocol_test

import (
	"net/http"
	"strings"
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

// A form costs no memory, however many parts it has.
func TestCostFormAllocations(t *testing.T) { //nolint:paralleltest // counts allocations
	if raceEnabled {
		t.Skip("pools are not kept under the race detector; go test without -race counts")
	}
	r := &protocol.Request{Method: "POST", Path: "/upload", Header: http.Header{"Content-Type": {"multipart/form-data; boundary=b"}}}
	part := "--b\r\nContent-Disposition: form-data; name=\"a\"; filename=x\r\nContent-Type: text/plain\r\n\r\n"
	for name, text := range map[string]string{
		"a file of 1 MiB": part + strings.Repeat("\r\n--", 1<<18) + "\r\n--b--\r\n",
		"10,000 parts":    strings.Repeat(part+"1\r\n", 10_000) + "--b--\r\n",
		"no form":         strings.Repeat("--b\r\nA:\r\n\r\n", 100_000),
	} {
		body := []byte(text)
		allocs := testing.AllocsPerRun(5, func() {
			if _, err := protocol.DefaultFingerprint(r, "8e03978e-40d5-43dd-bc93-6894a57f9324", body); err != nil {
				t.Fatal(err)
			}
		})
		if allocs != 0 {
			t.Errorf("%s: %v allocations, want 0", name, allocs)
		}
	}
}
