package hour

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// client is the customers', Prometheus' and the operator's.
var client = &http.Client{Timeout: time.Minute}

// process is a running shop or bank.
type process struct {
	*testing.T

	cmd *exec.Cmd
	url string

	mu    sync.Mutex
	lines []string
	more  chan struct{} // receives after each line
}

// build builds the shop and the operator's program.
func (h *hour) build(dir string) {
	h.Helper()
	h.shopProgram, h.reprise = filepath.Join(dir, "shop"), filepath.Join(dir, "reprise")
	for target, source := range map[string]string{h.shopProgram: "shop", h.reprise: "../../cmd/reprise"} {
		cmd := exec.CommandContext(h.Context(), "go", "build", "-o", target, ".")
		cmd.Dir = source
		if out, err := cmd.CombinedOutput(); err != nil {
			h.Fatalf("%v: %s", err, out)
		}
	}
}

// start starts the shop's program and waits until it listens.
func (h *hour) start(args ...string) *process {
	h.Helper()
	p := &process{T: h.T, cmd: exec.CommandContext(context.WithoutCancel(h.Context()), h.shopProgram, args...), more: make(chan struct{}, 1)}
	p.cmd.Stderr = os.Stderr
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		h.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		h.Fatal(err)
	}
	h.Cleanup(p.kill)
	go func() {
		for lines := bufio.NewScanner(out); lines.Scan(); {
			p.mu.Lock()
			p.lines = append(p.lines, lines.Text())
			p.mu.Unlock()
			select {
			case p.more <- struct{}{}:
			default:
			}
		}
	}()
	p.url = "http://" + strings.TrimPrefix(p.await("listening on "), "listening on ")
	return p
}

// await waits until the process has printed lines that begin so, and returns the last.
func (p *process) await(prefixes ...string) (line string) {
	p.Helper()
	timeout := time.After(time.Minute)
	for _, prefix := range prefixes {
		for line = p.printed(prefix); line == ""; line = p.printed(prefix) {
			select {
			case <-p.more:
			case <-timeout:
				p.Fatalf("the process does not print %q", prefix)
			}
		}
	}
	return line
}

func (p *process) printed(prefix string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, line := range p.lines {
		if strings.HasPrefix(line, prefix) {
			return line
		}
	}
	return ""
}

// kill ends the process as the kernel does.
func (p *process) kill() {
	if p.cmd.ProcessState == nil {
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait()
	}
}

// get returns a page of the process.
func (p *process) get(path string) (status int, body string) {
	p.Helper()
	ctx, cancel := context.WithTimeout(p.Context(), time.Minute)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url+path, http.NoBody)
	if err != nil {
		p.Fatal(err)
	}
	got, err := client.Do(r)
	if err != nil {
		p.Fatal(err)
	}
	defer got.Body.Close()
	text, err := io.ReadAll(got.Body)
	if err != nil {
		p.Fatal(err)
	}
	return got.StatusCode, string(text)
}

// metrics returns the metrics of one scrape of the process.
func (p *process) metrics() map[string]*dto.MetricFamily {
	p.Helper()
	_, text := p.get("/metrics")
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(text))
	if err != nil {
		p.Fatal(err)
	}
	return families
}

// asked returns the bank's answer about a payment.
func (p *process) asked(key string) string {
	p.Helper()
	if status, _ := p.get("/payments/" + key); status == http.StatusNotFound {
		return "no such payment"
	}
	return "booked"
}
