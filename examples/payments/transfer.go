package main

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	reprisepg "github.com/reprise-go/reprise/store/postgres"
)

// order is the body of a client's request.
type order struct {
	From   string `json:"from"`
	To     string `json:"to"`
	Amount int64  `json:"amount"` // in cents
	Note   string `json:"note"`
}

var errFunds = errors.New("insufficient funds, or no such account")

// transfer runs in the transaction of its attempt. It does not end it: the middleware
// commits its rows together with the response, or rolls both back. A 4xx is kept as a
// response, and its rows are undone; a 5xx is forgotten, so that a retry runs again.
func transfer(w http.ResponseWriter, r *http.Request) {
	var o order
	if err := json.NewDecoder(r.Body).Decode(&o); err != nil || o.Amount <= 0 || o.From == o.To {
		http.Error(w, "want two accounts and a positive amount", http.StatusBadRequest)
		return
	}
	tx, ok := reprisepg.Tx(r.Context())
	if !ok {
		http.Error(w, "no transaction", http.StatusInternalServerError)
		return
	}
	id, err := move(r.Context(), tx, o)
	switch {
	case errors.Is(err, errFunds):
		http.Error(w, err.Error(), http.StatusUnprocessableEntity)
	case err != nil:
		slog.ErrorContext(r.Context(), "transfer", slog.Any("error", err))
		http.Error(w, "try again", http.StatusServiceUnavailable)
	default:
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(w).Encode(map[string]int64{"transfer": id})
	}
}

// move books one transfer: out of one account, into another, and into the ledger.
func move(ctx context.Context, tx pgx.Tx, o order) (id int64, err error) {
	// Both accounts are locked in one order, so that two transfers in opposite directions
	// cannot block each other.
	_, err = tx.Exec(ctx, `SELECT FROM reprise_example.accounts WHERE id IN ($1, $2) ORDER BY id FOR NO KEY UPDATE`, o.From, o.To)
	if err != nil {
		return 0, err
	}
	for _, step := range []struct{ sql, account string }{
		{`UPDATE reprise_example.accounts SET balance = balance - $2 WHERE id = $1 AND balance >= $2`, o.From},
		{`UPDATE reprise_example.accounts SET balance = balance + $2 WHERE id = $1`, o.To},
	} {
		tag, err := tx.Exec(ctx, step.sql, step.account, o.Amount)
		if err != nil {
			return 0, err
		}
		if tag.RowsAffected() == 0 {
			return 0, errFunds
		}
	}
	err = tx.QueryRow(ctx, `INSERT INTO reprise_example.transfers (source, target, amount, note) VALUES ($1, $2, $3, $4) RETURNING id`,
		o.From, o.To, o.Amount, o.Note).Scan(&id)
	return id, err
}

// accounts lists the balances.
func accounts(pool *pgxpool.Pool) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		rows, err := pool.Query(r.Context(), `SELECT id, balance FROM reprise_example.accounts`)
		if err != nil {
			http.Error(w, "try again", http.StatusServiceUnavailable)
			return
		}
		balances := map[string]int64{}
		var id string
		var balance int64
		if _, err := pgx.ForEachRow(rows, []any{&id, &balance}, func() error { balances[id] = balance; return nil }); err != nil {
			http.Error(w, "try again", http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(balances)
	}
}
