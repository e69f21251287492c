package table

import (
	"context"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/postgres/internal/wire"
)

// Complete completes r alone or in a batch. The caller has validated the request.
func (t *Table) Complete(ctx context.Context, r *store.CompleteRequest) error {
	if t.queue == nil {
		return t.Table.Complete(ctx, r)
	}
	return t.completeCombined(ctx, r)
}

// completionValues are the parameters of completion.sql. The empty payload is a value,
// because NULL is how a row says that it has none.
func completionValues(r *store.CompleteRequest) [][]byte {
	payload := r.Payload
	if payload == nil {
		payload = []byte{}
	}
	return [][]byte{payload, wire.AppendInt8(nil, r.Retention.Microseconds()), wire.AppendInt8(nil, r.Horizon.Microseconds())}
}
