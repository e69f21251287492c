package repriseotel

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/reprise-go/reprise/core/store"
)

// Store returns a decorator of store that measures each call. It has the abilities of
// store, see store.As.
func (t *Telemetry) Store(store store.Store) store.Store {
	return &measured{Store: store, telemetry: t}
}

type measured struct {
	store.Store

	telemetry *Telemetry
}

// Unwrap returns the store that is measured.
func (m *measured) Unwrap() store.Store { return m.Store }

func (m *measured) Claim(ctx context.Context, r store.ClaimRequest) (store.ClaimResult, error) {
	began := time.Now()
	result, err := m.Store.Claim(ctx, r)
	m.record(ctx, "claim", began, err)
	return result, err
}

func (m *measured) Renew(ctx context.Context, rs []store.RenewRequest) ([]store.RenewStatus, error) {
	began := time.Now()
	statuses, err := m.Store.Renew(ctx, rs)
	m.record(ctx, "renew", began, err)
	return statuses, err
}

func (m *measured) Complete(ctx context.Context, r store.CompleteRequest) error {
	began := time.Now()
	err := m.Store.Complete(ctx, r)
	m.record(ctx, "complete", began, err)
	return err
}

func (m *measured) Release(ctx context.Context, id store.ID, owner store.Owner) error {
	began := time.Now()
	err := m.Store.Release(ctx, id, owner)
	m.record(ctx, "release", began, err)
	return err
}

func (m *measured) Unknown(ctx context.Context, r store.UnknownRequest) error {
	began := time.Now()
	err := m.Store.Unknown(ctx, r)
	m.record(ctx, "unknown", began, err)
	return err
}

func (m *measured) record(ctx context.Context, operation string, began time.Time, err error) {
	attributes := append(make([]attribute.KeyValue, 0, 2), keyOperation.String(operation))
	if class := errorType(err); class != "" {
		attributes = append(attributes, keyError.String(class))
	}
	m.telemetry.store.Record(ctx, time.Since(began).Seconds(), metric.WithAttributeSet(attribute.NewSet(attributes...)))
}

// errorTypes are the sentinels of the stores, with the error.type of each.
var errorTypes = []struct {
	err  error
	name string
}{
	{store.ErrUnknown, "unknown"},
	{store.ErrBusy, "busy"},
	{store.ErrUnavailable, "unavailable"},
	{store.ErrNotReplicated, "not-replicated"},
	{store.ErrFull, "full"},
	{store.ErrCorrupt, "corrupt"},
	{store.ErrMisconfigured, "misconfigured"},
	{store.ErrLeaseLost, "lease-lost"},
	{store.ErrNotApplied, "not-applied"},
	{store.ErrInvalid, "invalid"},
	{store.ErrClosed, "closed"},
}

// errorType returns the class of an error, or an empty string for none.
func errorType(err error) string {
	if err == nil {
		return ""
	}
	for _, class := range errorTypes {
		if errors.Is(err, class.err) {
			return class.name
		}
	}
	return "other"
}
