package front

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"sync/atomic"
)

// TLSFiles name files in PEM.
type TLSFiles struct {
	Cert, Key string // both empty: no TLS
	ClientCA  string // verifies the certificates of clients; empty: none is asked for
}

// tlsFiles are the files and their current content.
type tlsFiles struct {
	TLSFiles

	current atomic.Pointer[tls.Config]
}

// loadTLS returns nil without a certificate.
func loadTLS(files TLSFiles) (*tlsFiles, error) {
	if files.Cert == "" {
		return nil, nil //nolint:nilnil // there is no TLS
	}
	t := &tlsFiles{TLSFiles: files}
	c, err := t.load()
	if err != nil {
		return nil, err
	}
	t.current.Store(c)
	return t, nil
}

func (t *tlsFiles) load() (*tls.Config, error) {
	pair, err := tls.LoadX509KeyPair(t.Cert, t.Key)
	if err != nil {
		return nil, fmt.Errorf("the certificate %s: %w", t.Cert, err)
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}, NextProtos: []string{"h2", "http/1.1"}}
	if t.ClientCA != "" {
		text, err := os.ReadFile(t.ClientCA)
		if err != nil {
			return nil, fmt.Errorf("the certificates of clients: %w", err)
		}
		c.ClientCAs, c.ClientAuth = x509.NewCertPool(), tls.VerifyClientCertIfGiven
		if !c.ClientCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("the file %s has no certificate", t.ClientCA)
		}
	}
	return c, nil
}

// config returns a configuration that always has the current content.
func (t *tlsFiles) config() *tls.Config {
	return &tls.Config{
		MinVersion:         tls.VersionTLS12,
		NextProtos:         []string{"h2", "http/1.1"},
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return t.current.Load(), nil },
	}
}
