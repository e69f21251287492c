package blob_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gofiber/fiber/v2"
	"gocloud.dev/blob"
	"gocloud.dev/blob/fileblob"

	reprisefiber "github.com/reprise-go/reprise/adapters/fiber"
	reprisehttp "github.com/reprise-go/reprise/adapters/nethttp"
	repriseblob "github.com/reprise-go/reprise/blob"
	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/protocol"
)

// A server process responds to POST /export?size=… with a body of so many bytes, which it
// makes in pieces, and to GET /peak with its peak memory.

// serverPlan is the plan of a server process. It is in the environment, as JSON.
type serverPlan struct {
	Framework string // "nethttp" or "fiber"
	Guarded   bool   // behind the middleware, with Offload
	Directory string // the bucket
	Endpoint  string // of an S3 server with the bucket; empty: Directory
	Spool     string // the directory of the temporary files
	Size      int64
}

const serverVariable = "REPRISE_LAB_BLOB_SERVER"

// peak is by how much the memory of a process grew at most since it was asked last.
type peak struct {
	Resident int64 // the resident set
	Heap     int64 // objects, live or not collected yet
}

// heapPeaks samples the memory of the process.
type heapPeaks struct {
	heap         atomic.Int64 // at its highest
	live, before atomic.Int64 // heap and resident set at the beginning
}

func (h *heapPeaks) watch() {
	samples := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	for range time.Tick(time.Millisecond) {
		metrics.Read(samples)
		now := int64(samples[0].Value.Uint64())
		for was := h.heap.Load(); now > was && !h.heap.CompareAndSwap(was, now); was = h.heap.Load() { //nolint:revive // read to its end
		}
	}
}

// take returns the peaks and begins anew, with a heap without garbage.
func (h *heapPeaks) take() peak {
	p := peak{Resident: resident("VmHWM:") - h.before.Load(), Heap: h.heap.Load() - h.live.Load()}
	debug.FreeOSMemory()                                      // which collects first
	_ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0) // VmHWM begins anew
	h.before.Store(resident("VmRSS:"))
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	h.live.Store(int64(stats.HeapAlloc))
	h.heap.Store(0)
	return p
}

// resident returns a line of the memory of the process.
func resident(name string) int64 {
	status, _ := os.ReadFile("/proc/self/status")
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, name); ok {
			kib, _ := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			return kib << 10
		}
	}
	return 0
}

// pieces is a body that is made while it is read.
type pieces struct {
	left int64
	at   byte
}

func (p *pieces) Read(b []byte) (int, error) {
	if p.left == 0 {
		return 0, io.EOF
	}
	n := int(min(int64(len(b)), p.left))
	for i := range n {
		b[i] = p.at + byte(i)
	}
	p.at++
	p.left -= int64(n)
	return n, nil
}

// serveProcess is main of a server process.
func serveProcess(text string) error {
	var plan serverPlan
	if err := json.Unmarshal([]byte(text), &plan); err != nil {
		return err
	}
	guard, err := plan.guard()
	if err != nil {
		return err
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // of the process
	if err != nil {
		return err
	}
	peaks := new(heapPeaks)
	go peaks.watch()
	go func() { // the test that started it is gone
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	fmt.Println(ln.Addr())
	if plan.Framework == "fiber" {
		return plan.fiber(guard, peaks).Listener(ln)
	}
	return (&http.Server{Handler: plan.nethttp(guard, peaks), ReadHeaderTimeout: time.Minute}).Serve(ln)
}

// guard returns nil for a bare server.
func (plan *serverPlan) guard() (*protocol.Guard, error) {
	if !plan.Guarded {
		return nil, nil //nolint:nilnil // there is none
	}
	var bucket *blob.Bucket
	var err error
	if plan.Endpoint != "" {
		bucket, err = openS3(context.Background(), plan.Endpoint)
	} else {
		bucket, err = fileblob.OpenBucket(plan.Directory, &fileblob.Options{NoTempDir: true, Metadata: fileblob.MetadataDontWrite})
	}
	if err != nil {
		return nil, err
	}
	blobs, err := repriseblob.New(bucket, repriseblob.Config{Prefix: "reprise/"})
	if err != nil {
		return nil, err
	}
	engine, err := reprise.New(memstore.New(), reprise.Config{})
	if err != nil {
		return nil, err
	}
	return protocol.Over(engine, protocol.Config{
		Required: true, Offload: protocol.Offloading{Blobs: blobs, Dir: plan.Spool, MaxBody: plan.Size, Timeout: time.Minute},
	})
}

func (plan *serverPlan) nethttp(guard *protocol.Guard, peaks *heapPeaks) http.Handler {
	mux := http.NewServeMux()
	var export http.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/octet-stream")
		_, _ = io.CopyBuffer(struct{ io.Writer }{w}, &pieces{left: sizeOf(r.URL.Query().Get("size"))}, make([]byte, 32<<10))
	})
	if guard != nil {
		export = reprisehttp.Middleware(guard, reprisehttp.Unscoped)(export)
	}
	mux.Handle("POST /export", export)
	mux.HandleFunc("GET /peak", func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(peaks.take()) })
	return mux
}

func (plan *serverPlan) fiber(guard *protocol.Guard, peaks *heapPeaks) *fiber.App {
	app := fiber.New(fiber.Config{DisableStartupMessage: true, StreamRequestBody: true})
	handlers := []fiber.Handler{func(c *fiber.Ctx) error {
		c.Set("Content-Type", "application/octet-stream")
		size := sizeOf(c.Query("size"))
		return c.SendStream(&pieces{left: size}, int(size))
	}}
	if guard != nil {
		handlers = append([]fiber.Handler{reprisefiber.Middleware(guard, reprisefiber.Unscoped)}, handlers...)
	}
	app.Post("/export", handlers...)
	app.Get("/peak", func(c *fiber.Ctx) error { return c.JSON(peaks.take()) })
	return app
}

func sizeOf(query string) int64 {
	size, _ := strconv.ParseInt(query, 10, 64)
	return size
}

// process is a server process.
type process struct{ url string }

func start(t *testing.T, plan serverPlan) *process {
	t.Helper()
	text, err := json.Marshal(plan)
	must(t, err)
	self, err := os.Executable()
	must(t, err)
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), serverVariable+"="+string(text))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	must(t, err)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	addr, err := bufio.NewReader(out).ReadString('\n')
	must(t, err)
	return &process{"http://" + strings.TrimSpace(addr)}
}

var errShort = errors.New("another number of bytes")

// export requests the body, compares its bytes with the original, and returns the header.
func (p *process) export(t *testing.T, size int64) http.Header {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.url+"/export?size="+strconv.FormatInt(size, 10), http.NoBody)
	must(t, err)
	req.Header.Set("Idempotency-Key", "8e03978e-40d5-43dd-bc93-"+strconv.FormatInt(size, 10))
	resp, err := http.DefaultClient.Do(req) //nolint:forbidigo // nothing else uses it here
	must(t, err)
	defer resp.Body.Close()
	n, err := io.Copy(io.Discard, resp.Body)
	if err == nil && (n != size || resp.StatusCode != http.StatusOK) {
		err = fmt.Errorf("%w: %d, status %d", errShort, n, resp.StatusCode)
	}
	must(t, err)
	return resp.Header
}

// peak returns the process's peak memory since the last call.
func (p *process) peak(t *testing.T) (got peak) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.url+"/peak", http.NoBody)
	must(t, err)
	resp, err := http.DefaultClient.Do(req) //nolint:forbidigo // nothing else uses it here
	must(t, err)
	defer resp.Body.Close()
	must(t, json.NewDecoder(resp.Body).Decode(&got))
	return got
}
