package operate_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/operate"
)

func ExampleNewAuditLog() {
	handler := slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey || a.Key == "fence" || a.Key == "elapsed" { // which differ in every run
			return slog.Attr{}
		}
		return a
	}})
	engine, err := reprise.New(memstore.New(), reprise.Config{Observer: operate.NewAuditLog(slog.New(handler))})
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 2 {
		begun, err := engine.Begin(context.Background(), reprise.Operation{Scope: "tenant-7", Key: "key-1"})
		if err == nil && begun.Attempt != nil {
			_, _ = begun.Attempt.Complete(reprise.Completion{Payload: []byte("charged")})
		}
	}
	// Output:
	// level=INFO msg="idempotency claimed" outcome=claimed id=3ef92e4e6e08 scope=d68629cd920f attempt=1
	// level=INFO msg="idempotency completed" end=recorded id=3ef92e4e6e08 scope=d68629cd920f attempt=1
	// level=INFO msg="idempotency replayed" outcome=replayed id=3ef92e4e6e08 scope=d68629cd920f
}
