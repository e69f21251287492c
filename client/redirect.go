package repriseclient

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/url"
	"strings"
)

// leadsAway reports whether req follows redirects to a host that is neither the one that
// the caller named nor below it. It is the rule by which an [http.Client] drops the
// Authorization of a request.
func leadsAway(req *http.Request) bool {
	first := req
	for first.Response != nil && first.Response.Request != nil {
		first = first.Response.Request
	}
	if first == req || first.URL == nil || req.URL == nil {
		return false
	}
	from, to := hostname(first.URL), hostname(req.URL)
	if from == to {
		return false
	}
	return strings.ContainsAny(to, ":%") || !strings.HasSuffix(to, "."+from)
}

func hostname(u *url.URL) string { return strings.ToLower(u.Hostname()) }

// keyFor returns the key for another host to which a service redirected a call. It is the
// same for the same key and host, and does not reveal a key that cannot be guessed.
func keyFor(key string, u *url.URL) string {
	sum := sha256.Sum256([]byte("repriseclient/redirect/1\x00" + hostname(u) + "\x00" + key))
	return hex.EncodeToString(sum[:16])
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
