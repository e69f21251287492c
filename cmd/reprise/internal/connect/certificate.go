package connect

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/reprise-go/reprise/core/store"
)

// certificates remembers the certificate of a server that ends first, of all that the
// connections of a store met. A client that verifies refuses one that has ended; one that
// does not, such as with sslmode=require, connects although others cannot.
type certificates struct {
	mu    sync.Mutex
	first *x509.Certificate
}

// watch makes connections with these settings remember the certificates of the server.
func (c *certificates) watch(settings *tls.Config) {
	if settings == nil {
		return
	}
	settings.VerifyConnection = func(state tls.ConnectionState) error {
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, sent := range state.PeerCertificates {
			if c.first == nil || sent.NotAfter.Before(c.first.NotAfter) {
				c.first = sent
			}
		}
		return nil
	}
}

// soon is how long before its end a certificate is a finding.
const soon = 14 * 24 * time.Hour

// CertificateFinding returns a finding about the certificates of the server: err, if a
// connection failed because of one, or one that ends soon.
func (s *Store) CertificateFinding(err error, now time.Time) (f store.Finding, found bool) {
	if err != nil { // that of a store has the text of its cause only
		if _, why, failed := strings.Cut(err.Error(), "failed to verify certificate: "); failed {
			return store.Finding{Code: "certificate", Severity: store.Unsafe, Detail: "no connection, because the certificate of the server is not valid for this client: " + why}, true
		}
		return f, false
	}
	s.certificates.mu.Lock()
	defer s.certificates.mu.Unlock()
	first := s.certificates.first
	if first == nil || first.NotAfter.Sub(now) > soon {
		return f, false
	}
	return store.Finding{Code: "certificate", Severity: store.Warning, Detail: fmt.Sprintf(
		"the certificate of %s ends on %s: clients that verify it cannot connect then; renew it", first.Subject, first.NotAfter.UTC().Format(time.DateTime+" UTC"))}, true
}

// CertificateLine returns the command that shows the certificate of the server.
func (s *Store) CertificateLine() string {
	server, _, _ := net.SplitHostPort(s.server)
	line := "openssl s_client -connect " + s.server + " -servername " + server
	if s.Kind == Postgres {
		line += " -starttls postgres"
	}
	return line + " </dev/null | openssl x509 -noout -subject -dates"
}
