package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
)

// charge is the job that asks the bank for the money of an order. Its key is the same in
// every try, and no other order has it.
type charge struct {
	Order  int64  `json:"order"`
	Amount int64  `json:"amount"`
	Key    string `json:"key"`
}

// Kind implements river.JobArgs.
func (charge) Kind() string { return "charge" }

// charger carries out charges.
type charger struct {
	river.WorkerDefaults[charge]

	pool *pgxpool.Pool
	bank string
}

// NextRetry tries again soon: the bank remembers the result of a key.
func (*charger) NextRetry(*river.Job[charge]) time.Time { return time.Now().Add(time.Second) }

// Work asks the bank, and notes its number. A try that ends anywhere in between is
// repeated by River, and gets the same number from the bank.
func (c *charger) Work(ctx context.Context, job *river.Job[charge]) error {
	number, err := c.ask(ctx, job.Args)
	if err != nil {
		return err
	}
	_, err = c.pool.Exec(ctx, `UPDATE orders SET charge = $2 WHERE id = $1`, job.Args.Order, number)
	return err
}

func (c *charger) ask(ctx context.Context, what charge) (number string, err error) {
	body := strings.NewReader(fmt.Sprintf(`{"order":%d,"amount":%d}`, what.Order, what.Amount))
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.bank+"/charges", body)
	if err != nil {
		return "", err
	}
	r.Header.Set("Idempotency-Key", what.Key)
	res, err := http.DefaultClient.Do(r) //nolint:forbidigo // the job has a deadline
	if err != nil {
		return "", err
	}
	answer, err := io.ReadAll(io.LimitReader(res.Body, 64<<10))
	if err := errors.Join(err, res.Body.Close()); err != nil {
		return "", err
	}
	var charged struct {
		Charge string `json:"charge"`
	}
	if res.StatusCode != http.StatusCreated || json.Unmarshal(answer, &charged) != nil {
		return "", fmt.Errorf("the bank answered %s", res.Status)
	}
	return charged.Charge, nil
}
