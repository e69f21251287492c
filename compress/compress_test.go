package reprisecompress_test

import (
	"bytes"
	"context"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/klauspost/compress/zstd"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/protocol"

	reprisecompress "github.com/reprise-go/reprise/compress"
)

func TestWhatWasCompressedComesBack(t *testing.T) {
	t.Parallel()
	c := reprisecompress.New()
	for _, src := range [][]byte{nil, []byte("a"), bytes.Repeat([]byte(`{"id":7},`), 1000), make([]byte, 4<<20)} {
		packed := c.AppendCompressed([]byte("before"), src)
		got, err := c.AppendDecompressed([]byte("kept"), packed[len("before"):], len(src))
		if err != nil || string(got) != "kept"+string(src) {
			t.Errorf("%d bytes come back as %d: %v", len(src), len(got), err)
		}
		if len(src) > 1000 && len(packed) > len(src)/10 {
			t.Errorf("%d bytes are compressed to %d", len(src), len(packed))
		}
	}
}

// A frame that says less than it has, two frames, a frame without a size: none of them
// takes more memory than the limit.
func TestBombsAreRefused(t *testing.T) {
	t.Parallel()
	c := reprisecompress.New()
	const limit = 64 << 10
	large := make([]byte, 64<<20)
	bomb := c.AppendCompressed(nil, large)
	var unsized bytes.Buffer
	w, err := zstd.NewWriter(&unsized)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(large); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	half := c.AppendCompressed(nil, make([]byte, limit))
	for name, src := range map[string][]byte{
		"a bomb":                {},
		"a frame without size":  unsized.Bytes(),
		"a thousand frames":     bytes.Repeat(half, 1000),
		"a byte more":           c.AppendCompressed(nil, make([]byte, limit+1)),
		"nothing":               nil,
		"no frame":              []byte("no frame"),
		"half a frame":          bomb[:len(bomb)/2],
		"a frame and a bomb":    append(bytes.Clone(half), bomb...),
		"a frame to be skipped": {0x50, 0x2a, 0x4d, 0x18, 1, 0, 0, 0, 0},
	} {
		if name == "a bomb" {
			src = bomb
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		got, err := c.AppendDecompressed([]byte("kept"), src, limit)
		runtime.ReadMemStats(&after)
		if err == nil || string(got) != "kept" {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
		if grown := after.TotalAlloc - before.TotalAlloc; grown > 32<<20 {
			t.Errorf("%s: took %d MiB", name, grown>>20)
		}
	}
}

func TestGuardCompressesWhatItSeals(t *testing.T) {
	t.Parallel()
	store := memstore.New()
	engine, err := reprise.New(store, reprise.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = engine.Close(context.WithoutCancel(t.Context())) })
	guard, err := protocol.New(engine, protocol.Config{Seal: protocol.Sealing{On: true, Compressor: reprisecompress.New()}})
	if err != nil {
		t.Fatal(err)
	}
	body := strings.Repeat(`{"id":7,"name":"a name"},`, 2000)
	admit := func(key string) protocol.Admission {
		return guard.Admit(t.Context(), protocol.Request{Method: "POST", Header: http.Header{"Idempotency-Key": {key}}},
			func() (string, error) { return "tenant", nil })
	}
	var wg sync.WaitGroup
	for _, key := range []string{"a", "b", "c", "d"} {
		wg.Go(func() {
			a := admit(key)
			a.Exchange.Finish(protocol.Captured{Status: 201, Body: []byte(body)})
			a.Exchange.Close()
			if replay := admit(key).Response; replay.Status != 201 || string(replay.Body) != body {
				t.Errorf("replayed %d, %d bytes", replay.Status, len(replay.Body))
			}
		})
	}
	wg.Wait()
	page, err := store.List(t.Context(), reprise.Query{Limit: 10})
	if err != nil || len(page.Records) != 4 || page.Records[0].Size > len(body)/20 {
		t.Errorf("%+v, %v", page.Records, err)
	}
}

// FuzzAppendDecompressed decompresses anything, within the limit.
func FuzzAppendDecompressed(f *testing.F) {
	c := reprisecompress.New()
	f.Add(c.AppendCompressed(nil, bytes.Repeat([]byte("a"), 100)), uint16(100))
	f.Add(c.AppendCompressed(nil, make([]byte, 1<<20)), uint16(100))
	f.Add([]byte("(\xb5/\xfd"), uint16(0))
	f.Fuzz(func(t *testing.T, src []byte, limit uint16) {
		out, err := c.AppendDecompressed(nil, src, int(limit))
		if len(out) > int(limit) || err != nil && len(out) > 0 {
			t.Fatalf("%d bytes with a limit of %d: %v", len(out), limit, err)
		}
	})
}
