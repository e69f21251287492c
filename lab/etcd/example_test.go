package etcd_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/reprise-go/reprise/lab/etcd/etcdcluster"
)

// The program of examples/etcd answers a payment, and its retry when the leader was
// killed and when the process was.
func TestExampleOutlivesItsLeaderAndItsProcess(t *testing.T) {
	t.Parallel()
	program := filepath.Join(t.TempDir(), "example")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, ".")
	build.Dir, build.Env = "../../examples/etcd", append(os.Environ(), "GOWORK=off")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	w := newWorld(t, etcdcluster.Start(t, 3))
	for life := range 2 {
		process := exec.CommandContext(t.Context(), program)
		process.Env = append(os.Environ(), "ETCD_MEMBERS="+strings.Join(w.cluster.Addrs(), ","), "ADDR=127.0.0.1:0")
		process.Stderr = os.Stderr
		out, err := process.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := process.Start(); err != nil {
			t.Fatal(err)
		}
		line, err := bufio.NewReader(out).ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		base := strings.TrimSpace(strings.TrimPrefix(line, "Serving payments on "))
		if life == 0 {
			wantPayment(t, base, "")
			w.cluster.Members[w.leader()].Kill(t)
		}
		wantPayment(t, base, "true")
		if err := process.Process.Kill(); err != nil {
			t.Error(err)
		}
		_ = process.Wait()
	}
}

// wantPayment sends the payment until it is answered with other than 503.
func wantPayment(t *testing.T, base, replayed string) {
	t.Helper()
	etcdcluster.Eventually(t, func() error {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, base+"/payments", strings.NewReader("{}"))
		if err != nil {
			return err
		}
		r.Header.Set("Idempotency-Key", "p-1")
		got, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(r)
		if err != nil {
			return err
		}
		defer got.Body.Close()
		body, err := io.ReadAll(got.Body)
		switch {
		case err != nil || got.StatusCode == http.StatusServiceUnavailable:
			return fmt.Errorf("%s: %q, %w", got.Status, body, err)
		case got.StatusCode != http.StatusCreated || string(body) != "payment 1\n" || got.Header.Get("Idempotent-Replayed") != replayed:
			t.Errorf("%s %q, replayed %q, want the first payment, replayed %q", got.Status, body, got.Header.Get("Idempotent-Replayed"), replayed)
		}
		return nil
	})
}
