package main

import (
	"encoding/json"
	"log/slog"
	"net/http"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"

	reprise "github.com/reprise-go/reprise/core"
	reprisepg "github.com/reprise-go/reprise/store/postgres"
)

// order is the body of a client's request.
type order struct {
	Amount int64  `json:"amount"` // in cents
	Note   string `json:"note"`
}

// orders accepts orders.
type orders struct{ jobs *river.Client[pgx.Tx] }

// ServeHTTP implements [http.Handler]. It writes the order and the job that pays for it
// in the transaction of the request, which commits with the response.
func (o orders) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx := r.Context()
	var wanted order
	if err := json.NewDecoder(r.Body).Decode(&wanted); err != nil || wanted.Amount <= 0 {
		http.Error(w, "want a positive amount", http.StatusBadRequest)
		return
	}
	tx, inTx := reprisepg.Tx(ctx)
	attempt, _ := reprise.AttemptFrom(ctx)
	key, err := attempt.Key("charge") // the same in all attempts
	if !inTx || err != nil {
		http.Error(w, "no transaction", http.StatusInternalServerError)
		return
	}
	name, _ := customer(r)
	var id int64
	err = tx.QueryRow(ctx, `INSERT INTO orders (customer, amount, note) VALUES ($1, $2, $3) RETURNING id`,
		name, wanted.Amount, wanted.Note).Scan(&id)
	if err == nil {
		_, err = o.jobs.InsertTx(ctx, tx, charge{Order: id, Amount: wanted.Amount, Key: key}, nil)
	}
	if err != nil {
		slog.ErrorContext(ctx, "order", slog.Any("error", err))
		http.Error(w, "try again", http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusAccepted)
	_ = json.NewEncoder(w).Encode(map[string]int64{"order": id})
}
