package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/reprise-go/reprise/core/store"
)

// demo finds the stuck operation and resolves it, through the console, as a person does.
// It returns an error at the first unexpected result.
func (s shop) demo(ctx context.Context, out io.Writer, addr string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	a, err := serveShop(ctx, out, addr, s.records)
	if err != nil {
		return err
	}
	return errors.Join(s.steps(ctx, out, a), a.close(ctx))
}

func (s shop) steps(ctx context.Context, out io.Writer, a *api) error {
	id, err := s.seed(ctx, a)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "1. %s\n   The client retries:\n", crashed)
	got, err := send(ctx, a.url, stuck, false)
	if err != nil {
		return err
	}
	if got.status != http.StatusConflict || !strings.Contains(got.body, "outcome-unknown") {
		return fmt.Errorf("want 409 outcome-unknown, got %+v", got)
	}
	fmt.Fprintf(out, "   < %d %s\n\n", got.status, got.body)

	fmt.Fprintln(out, "2. The console shows what needs a person:")
	home, err := visit(ctx, a.url+"/idempotency/")
	if err != nil {
		return err
	}
	for _, need := range []struct{ key, shown string }{{stuck, "lapsed, policy orders"}, {"order-unreadable", "unreadable"}} {
		id := idOf(need.key)
		if !strings.Contains(home, id.Short()) {
			return fmt.Errorf("the console does not show %s, the record of %s", id.Short(), need.key)
		}
		fmt.Fprintf(out, "   %s %s\n", id.Short(), need.shown)
	}

	fmt.Fprintln(out, "\n3. The operator finds the order in the ledger, and records its answer.")
	record, err := s.records.Inspect(ctx, id)
	if err != nil {
		return err
	}
	if err := resolve(ctx, a.url, id, record.Fence); err != nil {
		return err
	}
	fmt.Fprintln(out, "\n4. The client retries once more:")
	got, err = send(ctx, a.url, stuck, false)
	if err != nil {
		return err
	}
	if want := (answer{http.StatusCreated, true, `{"order":3}`}); got != want {
		return fmt.Errorf("want %+v, got %+v", want, got)
	}
	fmt.Fprintf(out, "   < %d %s\n   < Idempotent-Replayed: true\n\nThe order was not run a second time.\n", got.status, got.body)
	return nil
}

// visit returns a page of the console.
func visit(ctx context.Context, address string) (string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return "", err
	}
	got, err := client.Do(r)
	if err != nil {
		return "", err
	}
	defer got.Body.Close()
	body, err := io.ReadAll(got.Body)
	if err == nil && got.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", address, got.Status)
	}
	return string(body), err
}

// resolve sends the form of the console's page of a record.
func resolve(ctx context.Context, base string, id store.ID, fence uint64) error {
	form := url.Values{
		"action": {"answer"}, "state": {"lapsed"}, "fence": {strconv.FormatUint(fence, 10)}, "status": {"201"}, "content-type": {"application/json"},
		"body": {`{"order":3}`}, "retention": {"24h"}, "reason": {"in the ledger as order 3"}, "confirm": {id.Short()},
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, base+"/idempotency/records/orders/"+id.String(), strings.NewReader(form.Encode()))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	got, err := client.Do(r)
	if err != nil {
		return err
	}
	defer got.Body.Close()
	body, err := io.ReadAll(got.Body)
	if err != nil || !strings.Contains(string(body), "The answer was recorded") {
		return fmt.Errorf("the console: %s %s: %w", got.Status, body, err)
	}
	return nil
}
