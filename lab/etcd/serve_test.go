package etcd_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/reprise-go/reprise/conformance/adaptertest"
	"github.com/reprise-go/reprise/lab/etcd"
	labhttp "github.com/reprise-go/reprise/lab/nethttp"
	"github.com/reprise-go/reprise/lab/serve"
	"github.com/reprise-go/reprise/lab/servers"
)

// The test server over etcd+redis answers a retry whose body Redis has, and refuses it
// when Redis has lost that: it is not run again.
func TestServedOverEtcdWithBodiesInRedis(t *testing.T) { //nolint:paralleltest // it registers stores
	etcd.Register()
	redis := servers.Redis.Start(t)
	options, err := serve.ParseOptions("nethttp", []string{
		"-store", "etcd+redis", "-etcd-url", strings.Join(start(t, 3).Addrs(), ","), "-redis-url", redis.URL(),
	}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	stdout, written := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- serve.Run(ctx, labhttp.New, options, written, io.Discard) }()
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = io.Copy(io.Discard, stdout) }()
	url := "http://" + strings.TrimSpace(strings.TrimPrefix(line, "listening on ")) + "/t/op"
	client := &http.Client{Transport: new(http.Transport)}
	post := func(key string, size, status int, replayed string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Idempotency-Key", key)
		r.Header.Set(adaptertest.TenantHeader, "tenant")
		r.Header.Set(adaptertest.ProgramHeader, fmt.Sprintf(`{"body_size":%d}`, size))
		got, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer got.Body.Close()
		body, err := io.ReadAll(got.Body)
		if err != nil || got.StatusCode != status || got.Header.Get("Idempotent-Replayed") != replayed || status == http.StatusOK && len(body) != size {
			t.Errorf("%s: %s, replayed %q, %d bytes, %v; want %d, replayed %q", key, got.Status, got.Header.Get("Idempotent-Replayed"), len(body), err, status, replayed)
		}
	}
	for _, replayed := range []string{"", "true"} {
		post("small", 100, http.StatusOK, replayed)
		post("large", 100_000, http.StatusOK, replayed)
	}
	redis.Kill(t)
	redis.Restart(t)
	post("small", 100, http.StatusOK, "true")
	post("large", 100_000, http.StatusConflict, "")
	client.CloseIdleConnections()
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	_ = written.Close()
}
