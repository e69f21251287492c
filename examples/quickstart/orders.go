package main

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"sync"

	reprise "github.com/reprise-go/reprise/core"
)

// order is an order of a tenant.
type order struct {
	ID       string `json:"id"`
	Item     string `json:"item"`
	Quantity int    `json:"quantity"`
	tenant   string
}

// chargeFunc charges an amount at the bank, which supports idempotency keys too.
type chargeFunc func(ctx context.Context, key string, cents int) error

// orders is the API. Its handlers are unaware of keys and replays.
type orders struct {
	bank chargeFunc

	mu   sync.Mutex
	byID map[string]order
}

// create serves POST /orders.
func (o *orders) create(w http.ResponseWriter, r *http.Request) {
	tenant, _ := tenantOf(r)
	wanted := order{tenant: tenant}
	if err := json.NewDecoder(r.Body).Decode(&wanted); err != nil || wanted.Item == "" || wanted.Quantity < 1 {
		answer(w, http.StatusBadRequest, map[string]string{"error": "want an item and a quantity"})
		return
	}
	// The call to the bank gets a key that is the same in every attempt on this
	// operation, and is not the client's own. If this process dies after the call, the
	// next attempt repeats it, and the bank recognises the key.
	attempt, _ := reprise.AttemptFrom(r.Context())
	key, err := attempt.Key("charge")
	if err != nil { // the middleware is missing: the policy requires a key
		answer(w, http.StatusInternalServerError, map[string]string{"error": "this service is set up wrongly"})
		return
	}
	if err := o.bank(r.Context(), key, 1000*wanted.Quantity); err != nil {
		answer(w, http.StatusBadGateway, map[string]string{"error": "the bank does not answer"}) // a 5xx is not kept: the retry runs again
		return
	}
	made := o.add(wanted)
	w.Header().Set("Location", "/orders/"+made.ID)
	answer(w, http.StatusCreated, made)
}

func (o *orders) add(wanted order) order {
	o.mu.Lock()
	defer o.mu.Unlock()
	wanted.ID = strconv.Itoa(len(o.byID) + 1)
	o.byID[wanted.ID] = wanted
	return wanted
}

// show serves GET /orders/{id}.
func (o *orders) show(w http.ResponseWriter, r *http.Request) {
	tenant, _ := tenantOf(r)
	o.mu.Lock()
	found, there := o.byID[r.PathValue("id")]
	o.mu.Unlock()
	if !there || found.tenant != tenant {
		answer(w, http.StatusNotFound, map[string]string{"error": "no such order"})
		return
	}
	answer(w, http.StatusOK, found)
}

func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // the client may have left
}

// tokens says who a bearer token belongs to.
var tokens = map[string]string{"acme-token": "acme", "globex-token": "globex"}

type tenantKey struct{}

// authenticate finds the tenant of a request.
func authenticate(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		tenant, known := tokens[strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")]
		if !known {
			answer(w, http.StatusUnauthorized, map[string]string{"error": "unknown token"})
			return
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), tenantKey{}, tenant)))
	})
}

// tenantOf is the scope of a request's key. An empty one is refused by the middleware.
func tenantOf(r *http.Request) (string, error) {
	tenant, _ := r.Context().Value(tenantKey{}).(string)
	return tenant, nil
}

// chargeNobody is the bank of this example.
func chargeNobody(context.Context, string, int) error { return nil }
