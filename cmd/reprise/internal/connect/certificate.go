package connect

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/reprise-go/reprise/core/store"
)

// certificates remembers the certificate of a server that ends first, of all that the
// connections of a store met: its own, or that of an authority above it. A client that
// verifies refuses one that has ended; one that does not, such as with sslmode=require,
// connects although others cannot.
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
		chains := state.VerifiedChains
		if len(chains) == 0 {
			chains = [][]*x509.Certificate{state.PeerCertificates}
		}
		first := endsFirst(chains[0])
		for _, other := range chains[1:] { // one that lasts is enough
			if end := endsFirst(other); end.NotAfter.After(first.NotAfter) {
				first = end
			}
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.first == nil || first.NotAfter.Before(c.first.NotAfter) {
			c.first = first
		}
		return nil
	}
}

func endsFirst(chain []*x509.Certificate) *x509.Certificate {
	return slices.MinFunc(chain, func(a, b *x509.Certificate) int { return a.NotAfter.Compare(b.NotAfter) })
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
	ends, then := "ends", " then"
	if first.NotAfter.Before(now) { // this client does not verify it
		ends, then = "ended", ""
	}
	return store.Finding{Code: "certificate", Severity: store.Warning, Detail: fmt.Sprintf(
		"the certificate of %s %s on %s: clients that verify it cannot connect%s; renew it", first.Subject, ends, first.NotAfter.UTC().Format(time.DateTime+" UTC"), then)}, true
}

// CertificateLine returns the command that shows the certificates of the server, from its
// own to the last one that it sends, and their ends.
func (s *Store) CertificateLine() string {
	server, _, _ := net.SplitHostPort(s.server)
	line := "openssl s_client -connect " + s.server + " -servername " + server
	switch s.Kind {
	case Postgres:
		line += " -starttls postgres"
	case MySQL:
		line += " -starttls mysql"
	default: // TLS from the first byte
	}
	return line + " </dev/null | grep -E '^ *[0-9]+ s:|NotAfter'"
}
