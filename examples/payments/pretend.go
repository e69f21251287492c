package main

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync"
)

// pretendBank books a payment once for each key. It declines more than 10,000 euros. Its
// answers to payments of 13 cents get lost.
//
//	POST /payments        201 with the receipt, or 402
//	GET /payments/{key}   201 with the receipt, or 404
type pretendBank struct {
	*http.ServeMux

	mu     sync.Mutex
	booked map[string]receipt // by key
}

// receipt is an entry of the bank's ledger.
type receipt struct {
	Number int `json:"number"`
	payment
}

func newPretendBank() *pretendBank {
	b := &pretendBank{ServeMux: http.NewServeMux(), booked: map[string]receipt{}}
	b.HandleFunc("POST /payments", b.post)
	b.HandleFunc("GET /payments/{key}", b.get)
	return b
}

func (b *pretendBank) post(w http.ResponseWriter, r *http.Request) {
	var p payment
	if err := json.NewDecoder(r.Body).Decode(&p); err != nil {
		http.Error(w, "want a payment", http.StatusBadRequest)
		return
	}
	if p.Cents > 1_000_000 {
		w.WriteHeader(http.StatusPaymentRequired)
		_, _ = w.Write([]byte(`{"declined":"too much"}`))
		return
	}
	entry := b.book(r, p)
	if p.Cents == 13 {
		panic(http.ErrAbortHandler)
	}
	entry.write(w)
}

// book books a payment, unless it is booked already under the key.
func (b *pretendBank) book(r *http.Request, p payment) receipt {
	key := strings.Trim(r.Header.Get("Idempotency-Key"), `"`)
	b.mu.Lock()
	defer b.mu.Unlock()
	entry, known := b.booked[key]
	if !known {
		entry = receipt{len(b.booked) + 1, p}
		b.booked[key] = entry
	}
	return entry
}

func (b *pretendBank) get(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	entry, known := b.booked[r.PathValue("key")]
	b.mu.Unlock()
	if !known {
		http.NotFound(w, r)
		return
	}
	entry.write(w)
}

func (e receipt) write(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	_ = json.NewEncoder(w).Encode(e)
}
