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

// ConsumedRuns is how many handlers run during [App.CheckConsumed] if the body is kept.
const ConsumedRuns = int64(len(rests)) * 12

// CheckConsumed fails the test unless requests to path, where a layer outside consumes
// the body as [DecodeJSON] does, never get the replay of another one (R50). The lengths
// of the bodies are declared or not, in HTTP/1.1 and HTTP/2, with a coding or without. A
// handler that runs responds with the body that it reads; kept says that it does.
func (a *App) CheckConsumed(path string, kept bool) {
	a.tb.Helper()
	for _, n := range rests {
		for _, declared := range []bool{true, false} {
			for _, coding := range []string{"", "identity", "x-own"} {
				for version, client := range map[string]*http.Client{"HTTP/1.1": Client, "HTTP/2": client2} {
					where := fmt.Sprintf("%s of %d bytes, declared: %v, coding %q", version, n, declared, coding)
					a.checkConsumed(client, where, kept, func(key string, amount byte) *http.Request {
						r := a.Request("POST", path, Payment(amount, n), "Idempotency-Key", key, "Content-Type", "application/json")
						if coding != "" {
							r.Header.Set("Content-Encoding", coding)
						}
						if !declared {
							r.ContentLength, r.Body = -1, io.NopCloser(strings.NewReader(Payment(amount, n)))
						}
						return r
					})
				}
			}
		}
	}
}

// checkConsumed sends two requests with a key and different bodies.
func (a *App) checkConsumed(client *http.Client, where string, kept bool, request func(key string, amount byte) *http.Request) {
	a.tb.Helper()
	key := rand.Text()
	for _, row := range []struct {
		amount byte
		status int // where the body is kept
	}{{'1', http.StatusOK}, {'1', http.StatusOK}, {'2', http.StatusUnprocessableEntity}} {
		r := request(key, row.amount)
		sent, err := r.GetBody()
		if err != nil {
			a.tb.Fatal(err)
		}
		body, _ := io.ReadAll(sent)
		got, err := try(client, r)
		switch {
		case err != nil:
			a.tb.Fatalf("%s: %v", where, err)
		case !kept && (got.Status != http.StatusBadRequest || !strings.Contains(got.Body, "request-invalid")):
			a.tb.Errorf("%s with the amount %c: %+v, want 400", where, row.amount, got)
		case kept && got.Status != row.status, kept && row.status == http.StatusOK && got.Body != string(body):
			a.tb.Errorf("%s with the amount %c: %+v, want %d", where, row.amount, got, row.status)
		}
	}
}
