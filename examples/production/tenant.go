package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"net/http"
	"strings"

	"github.com/golang-jwt/jwt/v5"
)

// tenantKey is the place of the tenant in the context of a request.
type tenantKey struct{}

// tenantOf is the scope of the middleware: the tenant that authenticate found.
func tenantOf(r *http.Request) (string, error) {
	tenant, ok := r.Context().Value(tenantKey{}).(string)
	if !ok || tenant == "" {
		return "", errors.New("no tenant: is the route inside authenticate?")
	}
	return tenant, nil
}

// authenticator knows tenants by a token that they sign, or by an API key.
type authenticator struct {
	secret []byte                       // of the tokens
	keys   map[[sha256.Size]byte]string // the tenant of each digest of an API key
}

// digests returns the digests of API keys, by which a lookup takes no time that depends
// on a secret.
func digests(tenantOfKey map[string]string) map[[sha256.Size]byte]string {
	keys := make(map[[sha256.Size]byte]string, len(tenantOfKey))
	for key, tenant := range tenantOfKey {
		keys[sha256.Sum256([]byte(key))] = tenant
	}
	return keys
}

// authenticate answers 401 to requests without a tenant. It is outside of the middleware,
// so that a refusal is never recorded.
func (a authenticator) authenticate(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		tenant, err := a.tenant(r)
		if err != nil {
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "not authenticated", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), tenantKey{}, tenant)))
	})
}

func (a authenticator) tenant(r *http.Request) (string, error) {
	if key := r.Header.Get("X-Api-Key"); key != "" {
		tenant, ok := a.keys[sha256.Sum256([]byte(key))]
		if !ok {
			return "", errors.New("unknown API key")
		}
		return tenant, nil
	}
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok {
		return "", errors.New("no token")
	}
	var claims jwt.RegisteredClaims
	_, err := jwt.ParseWithClaims(token, &claims, func(*jwt.Token) (any, error) { return a.secret, nil },
		jwt.WithValidMethods([]string{jwt.SigningMethodHS256.Alg()}), jwt.WithExpirationRequired(), jwt.WithAudience("transfers"))
	if err != nil || claims.Subject == "" {
		return "", errors.Join(errors.New("invalid token"), err)
	}
	return claims.Subject, nil // the tenant, not the token: a retry may come with a new one
}
