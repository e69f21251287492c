package wire

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/reprise-go/reprise/conformance/adaptertest"
	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/operate"
	"github.com/reprise-go/reprise/core/protocol"
)

// secret is in every part of the requests that a client chooses.
const secret = "s3cret"

// logsHaveNothingOfRequests sends requests that are refused, run, replayed and fail,
// with a word in every part of them, and looks for the word in the log of everything.
func logsHaveNothingOfRequests(t *testing.T, adapter server) {
	t.Helper()
	t.Parallel()
	const (
		head    = "POST /t/s3cret?q=s3cret HTTP/1.1\r\nHost: s3cret.test\r\nX-Test-Tenant: s3cret\r\nX-S3cret: s3cret\r\n"
		key     = "Idempotency-Key: s3cret-key\r\n"
		form    = "Content-Type: multipart/form-data; boundary=s3cret\r\n"
		parted  = "--s3cret\r\nS3cret s3cret\r\n\r\nx\r\n--s3cret--\r\n"
		encoded = "Content-Type: application/x-www-form-urlencoded\r\n"
	)
	body := func(text string) string { return fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(text), text) }
	requests := map[string]string{
		"run":              head + key + body(`{"s3cret":"s3cret"}`),
		"replay":           head + key + body(`{"s3cret":"s3cret"}`),
		"another request":  head + key + body(`{"s3cret":"s3cr3t"}`),
		"a malformed key":  head + "Idempotency-Key: \"s3cret\r\n" + body(""),
		"two keys":         head + key + key + body(""),
		"a long key":       head + "Idempotency-Key: " + strings.Repeat(secret, 100) + "\r\n" + body(""),
		"a large body":     head + "Idempotency-Key: s3cret-large\r\n" + body(strings.Repeat(secret, 1000)),
		"no JSON":          head + "Idempotency-Key: s3cret-json\r\nContent-Type: application/json\r\n" + body("s3cret"),
		"a malformed form": head + "Idempotency-Key: s3cret-form\r\n" + form + body(parted),
		"another form":     head + "Idempotency-Key: s3cret-form-2\r\n" + encoded + body("%s3cret=s3cret;%"),
		"a chunk":          head + "Idempotency-Key: s3cret-chunk\r\nTransfer-Encoding: chunked\r\n\r\ns3cret\r\ns3cret\r\n",
		"a coding":         head + "Idempotency-Key: s3cret-coding\r\nTransfer-Encoding: s3cret\r\n\r\n",
		"a length":         head + "Idempotency-Key: s3cret-length\r\nContent-Length: s3cret\r\n\r\n",
		"a folded line":    head + "Idempotency-Key: s3cret-fold\r\n s3cret\r\n" + body(""),
		"a trailer":        head + "Idempotency-Key: s3cret-trailer\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nS3cret s3cret\r\n\r\n",
		"a panic":          head + "Idempotency-Key: s3cret-panic\r\nX-Test-Program: {\"behaviour\":\"panic\",\"body\":\"s3cret\"}\r\n" + body("s3cret"),
		"no tenant":        strings.Replace(head, "X-Test-Tenant: s3cret", "X-Test-Tenant: ", 1) + key + body(""),
		"a tenant":         strings.Replace(head, "X-Test-Tenant: s3cret", "X-Test-Tenant: s3cret\ts3cret", 1) + key + body(""),
	}
	var log bytes.Buffer
	t.Cleanup(func() { // when the server has ended
		if text := log.String(); strings.Contains(strings.ToLower(text), secret) {
			t.Errorf("the log has\n%s", text)
		} else if !strings.Contains(text, "idempotency claimed") || !strings.Contains(text, "orders") {
			t.Errorf("this is no log of requests:\n%s", text)
		}
	})
	observer := operate.NewAuditLog(slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})))
	s := hostile(t, adapter, memstore.New(), adaptertest.Options{
		Engine: reprise.Config{Observer: observer},
		Guard:  protocol.Config{Limits: protocol.Limits{RequestBody: 1000}, Fingerprint: protocol.Fingerprinting{Func: protocol.CanonicalJSON}, Label: "orders"},
	})
	for _, text := range requests {
		s.send([]byte(text))
	}
}
