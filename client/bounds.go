package repriseclient

import (
	"context"
	"fmt"
	"time"
)

// Bounds are the bounds of one call, see [WithBounds]. A field that is zero keeps the
// bound of [Config].
type Bounds struct {
	MaxAttempts int           // the largest number of attempts, the first included; zero means that of [Config]
	MaxElapsed  time.Duration // how long after the beginning of the call another attempt may begin; zero means that of [Config]
}

// WithBounds returns a context whose calls have these bounds, wider or narrower than
// those of [Config]. A call with a negative bound is refused. Each request that follows a
// redirect starts with these bounds again; the deadline of the context is for all of
// them.
func WithBounds(ctx context.Context, b Bounds) context.Context {
	return context.WithValue(ctx, boundsOfContext, b)
}

// boundsOf returns the bounds of a call.
func (t *Transport) boundsOf(ctx context.Context) (Bounds, error) {
	own, _ := ctx.Value(boundsOfContext).(Bounds)
	b, err := own.within(Bounds{t.config.MaxAttempts, t.config.MaxElapsed})
	if err != nil {
		return b, fmt.Errorf("Bounds.%w", err)
	}
	return b, nil
}

// within returns b with the fields of other in place of those that are zero. The error
// begins with the name of the invalid field.
func (b Bounds) within(other Bounds) (Bounds, error) {
	if b.MaxAttempts < 0 {
		return b, fmt.Errorf("MaxAttempts is %d, want at least 1", b.MaxAttempts)
	}
	if b.MaxElapsed < 0 {
		return b, fmt.Errorf("MaxElapsed is negative: %s", b.MaxElapsed)
	}
	if b.MaxAttempts == 0 {
		b.MaxAttempts = other.MaxAttempts
	}
	if b.MaxElapsed == 0 {
		b.MaxElapsed = other.MaxElapsed
	}
	return b, nil
}
