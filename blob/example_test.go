package repriseblob_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"gocloud.dev/blob/memblob"

	repriseblob "github.com/reprise-go/reprise/blob"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/protocol"
)

// An export of three megabytes is recorded in a bucket, and its retry gets all of it.
// Adapters act as the function answer does here.
func Example() {
	ctx := context.Background()
	bucket := memblob.OpenBucket(nil) // or blob.OpenBucket(ctx, "s3://exports")
	defer bucket.Close()
	blobs, err := repriseblob.New(bucket, repriseblob.Config{Prefix: "reprise/"})
	if err != nil {
		fmt.Println(err)
		return
	}
	guard, err := protocol.New(memstore.New(), protocol.Config{Offload: protocol.Offloading{Blobs: blobs}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = guard.Close(ctx) }()

	export := bytes.Repeat([]byte("2026-11-22;42\n"), 3<<20/14)
	answer := func() *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		admission := guard.Admit(ctx, protocol.Request{
			Method: "POST", Path: "/exports", Header: http.Header{"Idempotency-Key": {"8e03978e-40d5-43dd-bc93-6894a57f9324"}},
		}, func() (string, error) { return "tenant-1", nil })
		if admission.Exchange == nil {
			protocol.WriteResponse(w.Header(), w, admission.Response)
			return w
		}
		var rec protocol.Recorder
		rec.Start(admission.Exchange, w.Header(), w, http.DetectContentType)
		defer rec.Close()        //nolint:contextcheck // an exchange has its own
		_, _ = rec.Write(export) //nolint:contextcheck // an exchange has its own
		rec.Finish()             //nolint:contextcheck // an exchange has its own
		return w
	}
	first, retry := answer(), answer()
	fmt.Println("the same bytes:", bytes.Equal(first.Body.Bytes(), retry.Body.Bytes()))
	fmt.Println("replayed:", retry.Header().Get("Idempotent-Replayed"))

	// Once a day, in one process: the retention of 24 hours, and a day more.
	swept, err := blobs.Sweep(ctx, 48*time.Hour)
	fmt.Println("swept:", swept.Blobs, err)
	// Output:
	// the same bytes: true
	// replayed: true
	// swept: 0 <nil>
}
