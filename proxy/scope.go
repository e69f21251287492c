package proxy

import (
	"bytes"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	reprisehttp "github.com/reprise-go/reprise/adapters/nethttp"
)

// Scope is a way to tell whose key a request has. The notations are:
//
//   - "header:NAME": the value of a request header, hashed. It must be the same in every
//     retry: a token that is renewed between two attempts makes two keys. If the value
//     is not a secret, a layer in front of the proxy must set the header.
//   - "unverified-claim:NAME": a claim of the JWT in Authorization: Bearer, such as sub,
//     together with its issuer. The proxy does not verify the token: a layer in front of
//     it must, or a client can claim the name of another.
//   - "certificate": the subject and the set of alternative names of the client's
//     certificate, which the TLS configuration of the server has verified. Two
//     authorities that issue the same names share a scope.
//   - "unscoped": all clients share one key space. A client that learns another one's key
//     can then replay its response.
//
// A request with a key that has no such header, claim or certificate is refused with 403.
type Scope struct {
	notation string
	field    string            // of the header, that it is made of; empty: none
	of       reprisehttp.Scope // nil: not set
}

// String returns the notation, or an empty string for the zero value.
func (s Scope) String() string { return s.notation }

// Unverified reports whether a layer in front of the proxy must verify the value that the
// scope is made of.
func (s Scope) Unverified() bool { return strings.HasPrefix(s.notation, claimPrefix) }

const (
	headerPrefix = "header:"
	claimPrefix  = "unverified-claim:"
	certificate  = "certificate"
)

var errNotation = errors.New("want one of header:NAME, unverified-claim:NAME, certificate and unscoped")

// UnmarshalText implements [encoding.TextUnmarshaler].
func (s *Scope) UnmarshalText(text []byte) error {
	notation := string(text)
	kind, name, named := strings.Cut(notation, ":")
	var (
		of    reprisehttp.Scope
		field string
	)
	switch {
	case notation == "unscoped":
		of = reprisehttp.Unscoped
	case notation == certificate:
		of = ofCertificate
	case !named || name == "" || strings.ContainsAny(name, " \t,"):
	case kind+":" == headerPrefix && !strings.Contains(name, ":") && !strings.EqualFold(name, "Host"): // no header has the host
		of, field = ofHeader(name), name
	case kind+":" == claimPrefix:
		of, field = ofClaim(name), "Authorization"
	}
	if of == nil {
		return fmt.Errorf("the scope is %q, %w", notation, errNotation)
	}
	*s = Scope{notation, field, of}
	return nil
}

// errScope refuses a request. Its text has no part of the request.
var errScope = errors.New("proxy: the request lacks the header, claim or certificate of its scope")

// ofHeader hashes the value: it may be a credential, and scopes are shown to operators.
func ofHeader(name string) reprisehttp.Scope {
	kind := headerPrefix + strings.ToLower(name)
	return func(r *http.Request) (string, error) {
		values := r.Header.Values(name)
		if len(values) != 1 || values[0] == "" { // the upstream may read another of two
			return "", errScope
		}
		return digest(kind, []byte(values[0])), nil
	}
}

func ofClaim(name string) reprisehttp.Scope {
	kind := claimPrefix + name
	return func(r *http.Request) (string, error) {
		values := r.Header.Values("Authorization")
		if len(values) != 1 {
			return "", errScope
		}
		scheme, token, _ := strings.Cut(values[0], " ")
		parts := strings.Split(strings.TrimSpace(token), ".")
		if !strings.EqualFold(scheme, "Bearer") || len(parts) != 3 {
			return "", errScope
		}
		payload, err := base64.RawURLEncoding.DecodeString(parts[1])
		if err != nil {
			return "", errScope
		}
		var claims map[string]any
		d := json.NewDecoder(bytes.NewReader(payload))
		d.UseNumber()
		if err := d.Decode(&claims); err != nil {
			return "", errScope
		}
		issuer, _ := claims["iss"].(string)
		switch claim := claims[name].(type) {
		case string:
			if claim != "" {
				return digest(kind, []byte(issuer), []byte(claim)), nil
			}
		case json.Number:
			return digest(kind, []byte(issuer), []byte(claim), []byte("number")), nil
		}
		return "", errScope
	}
}

// ofCertificate hashes the names, which a renewed certificate has too, in whatever order,
// and neither the issuer nor a serial number or key.
func ofCertificate(r *http.Request) (string, error) {
	if r.TLS == nil || len(r.TLS.VerifiedChains) == 0 {
		return "", errScope
	}
	c := r.TLS.PeerCertificates[0]
	names := alternativeNames(c)
	if len(c.Subject.Names) == 0 && len(names) == 0 {
		return "", errScope
	}
	return digest(certificate, append([][]byte{c.RawSubject}, names...)...), nil
}

func alternativeNames(c *x509.Certificate) (names [][]byte) {
	for _, u := range c.URIs {
		names = append(names, []byte("uri:"+u.String()))
	}
	for _, name := range c.DNSNames {
		names = append(names, []byte("dns:"+name))
	}
	for _, address := range c.EmailAddresses {
		names = append(names, []byte("email:"+address))
	}
	for _, ip := range c.IPAddresses {
		names = append(names, []byte("ip:"+ip.String()))
	}
	slices.SortFunc(names, bytes.Compare)
	return names
}

// digest returns the kind and a hash of the parts. Two kinds have no scope in common.
func digest(kind string, parts ...[]byte) string {
	h := sha256.New()
	for _, part := range parts {
		one := sha256.Sum256(part)
		h.Write(one[:])
	}
	return kind + ":" + hex.EncodeToString(h.Sum(nil))
}
