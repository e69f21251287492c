package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"time"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/protocol"
)

// What the clients send.
const (
	scope = "customer-1"
	order = `{"item":"book"}`

	stuckKey = "order-stuck"
)

// client is the clients of the shop, and the operator's browser.
var client = &http.Client{Timeout: time.Hour}

// answer is what a client got.
type answer struct {
	status   int
	replayed bool
	body     string
}

// send sends an order.
func send(ctx context.Context, url, key string, slow bool) (answer, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/orders", strings.NewReader(order))
	if err != nil {
		return answer{}, err
	}
	r.Header.Set("Idempotency-Key", `"`+key+`"`)
	r.Header.Set("Content-Type", "application/json")
	if slow {
		r.Header.Set("X-Slow", "yes")
	}
	got, err := client.Do(r)
	if err != nil {
		return answer{}, err
	}
	defer got.Body.Close()
	body, err := io.ReadAll(got.Body)
	return answer{got.StatusCode, got.Header.Get("Idempotent-Replayed") == "true", string(body)}, err
}

// seed leaves a replayed, a running, a resolved, an unreadable and a stuck record, and
// returns the ID of the stuck one.
func (s *shop) seed(ctx context.Context, a *api) (reprise.ID, error) {
	for range 2 {
		if _, err := send(ctx, a.url, "order-done", false); err != nil {
			return reprise.ID{}, err
		}
	}
	go func() { _, _ = send(ctx, a.url, "order-running", true) }()

	resolved := reprise.DeriveID(scope, "", "order-resolved")
	if err := s.kill(ctx, "order-resolved", stuckKey); err != nil {
		return reprise.ID{}, err
	}
	record, err := s.store.Inspect(ctx, resolved)
	if err != nil {
		return reprise.ID{}, err
	}
	err = protocol.Resolve(ctx, s.store, resolved, record.Fence, protocol.Response{Status: http.StatusCreated, Body: []byte(`{"order":2}`)}, 24*time.Hour)
	if err != nil {
		return reprise.ID{}, err
	}
	unreadable := reprise.DeriveID(scope, "", "order-unreadable")
	err = s.client.Set(ctx, s.prefix+string(unreadable[:]), "of another release", time.Hour).Err()
	return reprise.DeriveID(scope, "", stuckKey), err
}

// kill starts another process of the service, sends it orders, and kills it while it runs
// them. It returns when they have lapsed.
func (s *shop) kill(ctx context.Context, keys ...string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	process := exec.CommandContext(ctx, self, "-dying", "-redis-url", s.url, "-prefix", s.prefix) //nolint:gosec // this program
	process.Stderr = os.Stderr
	printed, err := process.StdoutPipe()
	if err != nil {
		return err
	}
	if err := process.Start(); err != nil {
		return err
	}
	defer func() { _ = process.Wait() }()
	defer func() { _ = process.Process.Kill() }() // a second time where all went well
	url, err := bufio.NewReader(printed).ReadString('\n')
	if err != nil {
		return fmt.Errorf("the other process: %w", err)
	}
	for _, key := range keys {
		go func() { _, _ = send(ctx, strings.TrimSpace(url), key, true) }()
		if err := s.await(ctx, key, reprise.StateRunning); err != nil {
			return err
		}
	}
	if err := process.Process.Kill(); err != nil {
		return err
	}
	for _, key := range keys {
		if err := s.await(ctx, key, reprise.StateLapsed); err != nil {
			return err
		}
	}
	return nil
}

// await waits until the record of a key has a state.
func (s *shop) await(ctx context.Context, key string, state reprise.RecordState) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	for {
		record, err := s.store.Inspect(ctx, reprise.DeriveID(scope, "", key))
		switch {
		case err == nil && record.State == state:
			return nil
		case err != nil && !errors.Is(err, reprise.ErrNotFound):
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the record of %s is not %v: %w", key, state, ctx.Err())
		case <-time.After(20 * time.Millisecond):
		}
	}
}
