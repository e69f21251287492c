package repriseclient

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/reprise-go/reprise/client/internal/secret"
)

// leadsAway reports whether req follows redirects to a host that is neither the one that
// the caller named nor below it, the rule by which an [http.Client] drops the
// Authorization of a request, or from HTTPS to a connection that others can read.
func leadsAway(req *http.Request) bool {
	first := req
	for first.Response != nil && first.Response.Request != nil {
		first = first.Response.Request
	}
	if first == req || first.URL == nil || req.URL == nil {
		return false
	}
	if first.URL.Scheme == "https" && req.URL.Scheme != "https" {
		return true
	}
	from, to := hostname(first.URL), hostname(req.URL)
	if from == to {
		return false
	}
	return strings.ContainsAny(to, ":%") || !strings.HasSuffix(to, "."+from)
}

func hostname(u *url.URL) string { return strings.ToLower(u.Hostname()) }

// keyFor returns the key for another place to which a service redirected a call. It is
// derived from the key, the scheme and the host, and does not reveal a key that cannot be
// guessed.
func keyFor(key string, u *url.URL) string {
	sum := sha256.Sum256([]byte("repriseclient/redirect/1\x00" + u.Scheme + "://" + hostname(u) + "\x00" + key))
	return hex.EncodeToString(sum[:16])
}

// follow makes a request that is not keyed. If redirects of a keyed call led to it, its
// failure is not one of the operation.
func (t *Transport) follow(req *http.Request) (*http.Response, error) {
	redirect := redirectOf(req)
	resp, err := t.unkeyed(t.withoutKey(req))
	if redirect == nil {
		return resp, err
	}
	fail := func(err error) error {
		c := callOf(redirect)
		return &RedirectError{redirect.StatusCode, locationOf(redirect, c.key), c.hash, err, secret.Of(c.key)}
	}
	if err != nil {
		return nil, fail(err)
	}
	if resp != nil && resp.Body != nil && resp.StatusCode != http.StatusSwitchingProtocols {
		resp.Body = &followedBody{resp.Body, fail}
	}
	return resp, nil
}

// locationOf returns the address to which a response redirects, without a key.
func locationOf(resp *http.Response, key string) string {
	location := resp.Header.Get("Location")
	if strings.Contains(location, key) {
		return ""
	}
	return location
}

// movedToGet reports whether a redirect of a keyed call would become a GET that an
// [http.Client] makes, and whose response may look like the operation's.
func movedToGet(resp *http.Response) bool {
	return (resp.StatusCode == http.StatusMovedPermanently || resp.StatusCode == http.StatusFound) && resp.Header.Get("Location") != ""
}

// unkeyed makes a request that is not keyed, with retries if its method is listed.
func (t *Transport) unkeyed(req *http.Request) (*http.Response, error) {
	if _, retried := t.methods[req.Method]; !retried {
		return t.base.RoundTrip(req)
	}
	r := &run{Transport: t, req: req, ctx: req.Context(), call: &call{replayed: t.service.Replayed}, observer: silent{}}
	return r.run() //nolint:contextcheck // it is in r
}

// redirectOf returns the response to a keyed call whose redirect led to req, nil if there
// is none.
func redirectOf(req *http.Request) *http.Response {
	for resp := req.Response; resp != nil && resp.Request != nil; resp = resp.Request.Response {
		if KeyOf(resp) != "" {
			return resp
		}
	}
	return nil
}

// followedBody is a body whose errors are those of a followed redirect.
type followedBody struct {
	io.ReadCloser
	fail func(error) error
}

func (b *followedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && err != io.EOF { //nolint:errorlint // as a Reader returns it
		err = b.fail(err)
	}
	return n, err
}

// withoutKey returns a request that is not keyed without the key that an [http.Client]
// copied to it for another host.
func (t *Transport) withoutKey(req *http.Request) *http.Request {
	if len(req.Header.Values(t.service.Header)) == 0 || !leadsAway(req) {
		return req
	}
	own := req.Clone(req.Context())
	own.Header.Del(t.service.Header)
	return own
}
