package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/riverqueue/river"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/store"
	reprisepg "github.com/reprise-go/reprise/store/postgres"
)

// askTimeout bounds a call to the bank, because the context of an attempt has no
// deadline, not even that of its job.
const askTimeout = 4 * time.Second

// charge is the job that charges the bank for an order. Its key is the same in every try,
// and unique to the order.
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

	engine *reprise.Engine
	bank   string
}

// NextRetry tries again soon, which is safe because the bank remembers the result of a
// key.
func (*charger) NextRetry(*river.Job[charge]) time.Time { return time.Now().Add(time.Second) }

// Work books a charge once, however often River tries the job, and however often the job
// is inserted: its key is that of the order, not of the job.
func (c *charger) Work(ctx context.Context, job *river.Job[charge]) error {
	_, err := reprise.Do(ctx, c.engine, reprise.Operation{
		Scope: "charges", Key: job.Args.Key, Fingerprint: store.FingerprintOf(job.EncodedArgs),
		Retention: 30 * 24 * time.Hour, Label: "charge",
	}, nil, func(ctx context.Context) (string, error) { return c.book(ctx, job.Args) })
	switch action, delay := reprise.SettlementOf(err); action {
	case reprise.Ack:
		return nil
	case reprise.Park:
		return river.JobCancel(err)
	default: // River discards a job after 25 errors; a snooze does not count
		slog.WarnContext(ctx, "charge", slog.Int64("order", job.Args.Order), slog.Any("error", err))
		return river.JobSnooze(cmp.Or(delay, time.Second))
	}
}

// book asks the bank, and books its number in the transaction that also has the record. A
// try that ends anywhere in between is repeated, and gets the same number from the bank.
func (c *charger) book(ctx context.Context, what charge) (number string, err error) {
	tx, ok := reprisepg.Tx(ctx)
	if !ok {
		return "", errors.New("no transaction")
	}
	if number, err = c.ask(ctx, what); err != nil {
		return "", err
	}
	if _, err := tx.Exec(ctx, `INSERT INTO bookings (order_id, charge, amount) VALUES ($1, $2, $3)`, what.Order, number, what.Amount); err != nil {
		return "", err
	}
	_, err = tx.Exec(ctx, `UPDATE orders SET charge = $2 WHERE id = $1`, what.Order, number)
	return number, err
}

func (c *charger) ask(ctx context.Context, what charge) (number string, err error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	body := strings.NewReader(fmt.Sprintf(`{"order":%d,"amount":%d}`, what.Order, what.Amount))
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.bank+"/charges", body)
	if err != nil {
		return "", err
	}
	r.Header.Set("Idempotency-Key", what.Key)
	res, err := http.DefaultClient.Do(r) //nolint:forbidigo // it has a deadline
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
