package protocol_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/reprise-go/reprise/core/protocol"
)

// A form costs no memory either, however many parts it has.
func TestCostFingerprintAllocations(t *testing.T) { //nolint:paralleltest // counts allocations
	if raceEnabled {
		t.Skip("pools are not kept under the race detector; go test without -race counts")
	}
	part := "--b\r\nContent-Disposition: form-data; name=\"a\"; filename=x\r\nContent-Type: text/plain\r\n\r\n"
	bytes, form := string(make([]byte, 64<<10)), []string{"multipart/form-data; boundary=b"}
	for name, c := range map[string]struct {
		f      protocol.Fingerprinter
		header http.Header
		body   string
	}{
		"default":         {protocol.DefaultFingerprint, http.Header{"Content-Type": {"application/json; charset=utf-8"}, "Content-Encoding": {"identity"}}, bytes},
		"none":            {protocol.NoFingerprint, http.Header{"Content-Type": {"application/json"}}, bytes},
		"a file of 1 MiB": {protocol.DefaultFingerprint, http.Header{"Content-Type": form}, part + strings.Repeat("\r\n--", 1<<18) + "\r\n--b--\r\n"},
		"10,000 parts":    {protocol.DefaultFingerprint, http.Header{"Content-Type": form}, strings.Repeat(part+"1\r\n", 10_000) + "--b--\r\n"},
		"no form":         {protocol.DefaultFingerprint, http.Header{"Content-Type": form}, strings.Repeat("--b\r\nA:\r\n\r\n", 100_000)},
	} {
		r := &protocol.Request{Method: "POST", Path: "/v1/tenants/42/orders", RawQuery: "expand=items", Header: c.header}
		body := []byte(c.body)
		if n := testing.AllocsPerRun(20, func() { must(c.f(r, "8e03978e-40d5-43dd-bc93-6894a57f9324", body)) }); n != 0 {
			t.Errorf("%s: %v allocations, want 0", name, n)
		}
	}
}
