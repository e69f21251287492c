package harness

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// DecodeJSON reads a JSON value from a body as many layers do, and leaves the rest.
func DecodeJSON(r *http.Request) {
	var v any
	_ = json.NewDecoder(r.Body).Decode(&v)
}

// Payment is a JSON body of n bytes, at least 30, that ends in a line end.
func Payment(amount byte, n int) string {
	head := fmt.Sprintf(`{"amount":%c,"pad":"`, amount)
	return head + strings.Repeat("x", n-len(head)-3) + "\"}\n"
}

// rests are lengths of a [Payment]: the decoder leaves nothing of the first, and the line
// end of the others.
var rests = [...]int{100, 513, 1537}

// CheckConsumed fails the test unless requests to path, where a layer outside consumes
// the body as [DecodeJSON] does, are refused (R50). The lengths of the bodies are
// declared or not, in HTTP/1.1 and HTTP/2, with a coding or without.
func (a *App) CheckConsumed(path string) {
	a.tb.Helper()
	for _, n := range rests {
		for _, declared := range []bool{true, false} {
			for _, coding := range []string{"", "identity", "x-own"} {
				for version, client := range map[string]*http.Client{"HTTP/1.1": Client, "HTTP/2": client2} {
					where := fmt.Sprintf("%s of %d bytes, declared: %v, coding %q", version, n, declared, coding)
					r := a.Request("POST", path, Payment('1', n), "Idempotency-Key", rand.Text(), "Content-Type", "application/json")
					if coding != "" {
						r.Header.Set("Content-Encoding", coding)
					}
					if !declared {
						r.ContentLength, r.Body = -1, io.NopCloser(strings.NewReader(Payment('1', n)))
					}
					got, err := try(client, r)
					if err != nil {
						a.tb.Fatalf("%s: %v", where, err)
					}
					if got.Status != http.StatusBadRequest || !strings.Contains(got.Body, "request-invalid") {
						a.tb.Errorf("%s: %+v, want 400", where, got)
					}
				}
			}
		}
	}
}
