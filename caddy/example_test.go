package reprisecaddy_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
)

func Example() {
	orders := 0
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		orders++ // it knows nothing of the header
		fmt.Fprintf(w, "order %d", orders)
	}))
	defer upstream.Close()

	dir, err := os.MkdirTemp("", "reprise-caddy-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "reprise.toml")
	if err := os.WriteFile(file, []byte("upstream = '"+upstream.URL+"'\nscope = 'unscoped'\n"), 0o600); err != nil {
		panic(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // an example has no context
	if err != nil {
		panic(err)
	}
	site := "http://" + l.Addr().String()
	l.Close()

	caddyfile := "{\n admin off\n persist_config off\n auto_https off\n}\n" + site + " {\n reprise memory " + file + "\n}\n"
	config, _, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte(caddyfile), nil)
	if err != nil {
		panic(err)
	}
	if err := caddy.Load(config, true); err != nil {
		panic(err)
	}
	defer func() { _ = caddy.Stop() }()

	for range 2 {
		r, err := http.NewRequest(http.MethodPost, site+"/orders", strings.NewReader("seat 1")) //nolint:noctx // as above
		if err != nil {
			panic(err)
		}
		r.Header.Set("Idempotency-Key", `"7c1f"`)
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			panic(err)
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		fmt.Println(resp.StatusCode, string(body), resp.Header.Get("Idempotent-Replayed") == "true")
	}
	// Output:
	// 200 order 1 false
	// 200 order 1 true
}
