package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os/exec"
	"strings"
	"time"
)

// run starts the built program and checks that it behaves as its row says.
func (p program) run(ctx context.Context, cmd *exec.Cmd, addr string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	if p.prints != "" {
		err := cmd.Run()
		if err == nil && !strings.Contains(output.String(), p.prints) {
			err = fmt.Errorf("it does not print %q", p.prints)
		}
		if err != nil {
			return fmt.Errorf("%w\n%s", err, output.Bytes())
		}
		return nil
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(ended)
	}()
	asked := make(chan error, 1)
	go func() { asked <- p.ask(ctx, addr) }()
	select {
	case <-ended:
		return fmt.Errorf("the service ended: %v\n%s", cmd.ProcessState, output.Bytes())
	case err := <-asked:
		_ = cmd.Process.Kill()
		<-ended
		if err != nil {
			return fmt.Errorf("%w\n%s", err, output.Bytes())
		}
		return nil
	}
}

// ask sends the request twice with one key, and wants the response of the first for the
// second.
func (p program) ask(ctx context.Context, addr string) error {
	first, err := p.send(ctx, addr, "7c1f")
	for ; err != nil; first, err = p.send(ctx, addr, "7c1f") { // until it listens
		select {
		case <-ctx.Done():
			return err
		case <-time.After(20 * time.Millisecond):
		}
	}
	second, err := p.send(ctx, addr, "7c1f")
	if err != nil {
		return err
	}
	if want := (response{http.StatusCreated, first.body, true}); first.status != want.status || first.replayed || second != want {
		return fmt.Errorf("the responses are %+v and %+v, want 201 and its replay", first, second)
	}
	none, err := p.send(ctx, addr, "")
	if err == nil && none.status != http.StatusBadRequest {
		err = fmt.Errorf("the response without a key is %+v, want 400", none)
	}
	return err
}

type response struct {
	status   int
	body     string
	replayed bool
}

func (p program) send(ctx context.Context, addr, key string) (response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+addr+p.path, strings.NewReader(p.body))
	if err != nil {
		return response{}, err
	}
	maps.Copy(r.Header, p.header)
	if key != "" {
		r.Header.Set("Idempotency-Key", key)
	}
	transport := &http.Transport{DisableKeepAlives: true}
	resp, err := transport.RoundTrip(r)
	if err != nil {
		return response{}, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return response{resp.StatusCode, string(body), resp.Header.Get("Idempotent-Replayed") == "true"}, err
}
