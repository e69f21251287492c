package protocol_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/protocol"
)

// A handler that returned has run for as long as it did, whatever the policy does with
// its response: a payment whose body took 55 s to be uploaded was called unknown.
func TestMaxRunBoundsTheHandlerAlone(t *testing.T) {
	const takes = 55 * time.Second
	body := large(6000)
	offloads := protocol.Config{
		Offload: protocol.Offloading{Blobs: new(blobs), Timeout: time.Minute}, Limits: protocol.Limits{ResponseBody: 1000},
	}
	for name, c := range map[string]struct {
		policy  protocol.Config
		handler func(*protocol.Recorder, http.Header, *protocol.Exchange)
	}{
		"a slow blob store": {offloads, writes(body, 500)},
		"a slow blob store, and a stream": {offloads, func(rec *protocol.Recorder, h http.Header, x *protocol.Exchange) {
			writes(body, 500)(rec, h, x)
			rec.Flush()
		}},
		"a slow decision": {protocol.Config{Keep: protocol.Keeping{Decide: func(protocol.Ending) protocol.Decision {
			time.Sleep(takes)
			return protocol.ByPreset
		}}}, writes(body, 500)},
		"a slow annotation": {protocol.Config{Keep: protocol.Keeping{Annotate: func(context.Context) string {
			time.Sleep(takes)
			return "note"
		}}}, writes(body, 500)},
	} {
		for _, preset := range []reprise.Preset{reprise.Recoverable, reprise.AtMostOnce} {
			t.Run(name+", "+preset.String(), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					cfg := c.policy
					cfg.Preset = preset
					cfg.Engine = reprise.Config{Lease: 30 * time.Second, MaxRun: 20 * time.Second, Observer: reprise.Observers()}
					if cfg.Offload.Blobs != nil {
						cfg.Offload.Blobs, cfg.Offload.Dir = &slowBlobs{takes: takes}, t.TempDir()
					}
					b := setupOver(t, memstore.New(), cfg)
					began := time.Now()
					first := b.run("k", func(rec *protocol.Recorder, h http.Header, x *protocol.Exchange) {
						time.Sleep(time.Second)
						c.handler(rec, h, x)
					})
					if took := time.Since(began); took != time.Second+takes {
						t.Errorf("took %v", took)
					}
					if first.Code != 201 || first.Header().Get("Idempotency-Status") != "" {
						t.Errorf("answered %d %v", first.Code, first.Header())
					}
					if again := b.replay("k"); again.Code != 201 || !bytes.Equal(again.Body.Bytes(), body) {
						t.Errorf("the retry is answered %d %.100q", again.Code, again.Body)
					}
				})
			})
		}
	}
}

// slowBlobs takes a while to write a blob.
type slowBlobs struct {
	blobs
	takes time.Duration
}

// Put implements [protocol.BlobStore].
func (b *slowBlobs) Put(ctx context.Context, name string, body *io.SectionReader) error {
	time.Sleep(b.takes)
	return b.blobs.Put(ctx, name, body)
}
