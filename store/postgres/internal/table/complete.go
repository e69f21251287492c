package table

import (
	"context"

	"github.com/reprise-go/reprise/core/store"
)

// Complete completes r alone or in a batch. The caller has validated the request.
func (t *Table) Complete(ctx context.Context, r *store.CompleteRequest) error {
	if t.queue == nil {
		return t.Table.Complete(ctx, r)
	}
	return t.completeCombined(ctx, r)
}

// completionArgs are the parameters of the statements that complete a record.
func completionArgs(r *store.CompleteRequest) []any {
	return []any{r.ID[:], r.Owner[:], payloadOf(r), r.Retention.Microseconds(), r.Horizon.Microseconds()}
}

// payloadOf returns the payload of a completion. The empty one is a value, because NULL
// is how a row says that it has none.
func payloadOf(r *store.CompleteRequest) []byte {
	if r.Payload == nil {
		return []byte{}
	}
	return r.Payload
}
