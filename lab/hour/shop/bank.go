package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"

	repriseclient "github.com/reprise-go/reprise/client"
	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/protocol"
)

// payment is a request of the shop's clients.
type payment struct {
	Reference string `json:"reference"`
	// Bank is how a failing bank takes the payment: "books" and never answers, or "hangs"
	// and does neither. Empty, it books and answers.
	Bank string `json:"bank,omitempty"`
}

// pay runs once for each key, and pays with a key that is derived from it.
func pay(bank string) http.Handler {
	client := new(http.Client)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		ctx := r.Context()
		attempt, _ := reprise.AttemptFrom(ctx)
		key, err := attempt.Key("charge")
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		out, err := http.NewRequestWithContext(ctx, http.MethodPost, bank+"/payments/"+key, strings.NewReader(string(body)))
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		res, err := client.Do(out)
		switch {
		case err == nil:
			defer res.Body.Close()
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(res.StatusCode)
			_, _ = io.Copy(w, res.Body)
		case repriseclient.NotSent(err):
			protocol.Release(ctx)
			http.Error(w, "the bank is away, and nothing was paid", http.StatusServiceUnavailable)
		default:
			protocol.Unknown(ctx, "the bank went away before it answered")
			http.Error(w, "the bank has not answered", http.StatusGatewayTimeout)
		}
	})
}

// bank books payments in a file, which outlives its process.
type bank struct {
	mu    sync.Mutex
	file  *os.File
	fails bool // as payments tell it to
}

func newBank(ledger string, fails bool) (http.Handler, error) {
	file, err := os.OpenFile(ledger, os.O_APPEND|os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	b := &bank{file: file, fails: fails}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /payments/{key}", b.book)
	mux.HandleFunc("GET /payments/{key}", b.find)
	return mux, nil
}

func (b *bank) book(w http.ResponseWriter, r *http.Request) {
	var p payment
	if err := json.NewDecoder(r.Body).Decode(&p); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if !b.fails || p.Bank != "hangs" {
		b.mu.Lock()
		_, err := fmt.Fprintln(b.file, r.PathValue("key"), p.Reference)
		b.mu.Unlock()
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
	}
	if b.fails && p.Bank != "" {
		fmt.Println("holding", p.Reference)
		select {} // until the process is killed
	}
	booked(w)
}

// find answers whether the ledger has a payment.
func (b *bank) find(w http.ResponseWriter, r *http.Request) {
	ledger, err := os.ReadFile(b.file.Name())
	switch {
	case err != nil:
		http.Error(w, err.Error(), http.StatusInternalServerError)
	case strings.Contains(string(ledger), r.PathValue("key")+" "):
		booked(w)
	default:
		http.NotFound(w, r)
	}
}

func booked(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	_, _ = io.WriteString(w, `{"status":"booked"}`)
}
