package front

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"testing"
	"time"
)

// The requests with a key have their least time to finish although the drain time is
// nearly over when the others have ended.
func TestFinishHasItsLeastTime(t *testing.T) {
	t.Parallel()
	failed := errors.New("the store failed")
	for name, c := range map[string]struct{ finish, want error }{
		"it finished":      {nil, nil},
		"it took too long": {fmt.Errorf("closed: %w", context.DeadlineExceeded), ErrDrain},
		"it failed":        {failed, failed},
	} {
		config := Config{Listen: "127.0.0.1:0", MaxConnections: 1, MaxPerPeer: 1, Metrics: http.NotFoundHandler(), Log: slog.New(slog.DiscardHandler)}
		s, err := Open(t.Context(), config, http.NotFoundHandler())
		if err != nil {
			t.Fatal(err)
		}
		ctx, end := context.WithCancel(t.Context())
		end()
		began := time.Now()
		err = s.Run(ctx, time.Millisecond, func(ctx context.Context) error {
			if until, _ := ctx.Deadline(); until.Sub(began) < finishTime {
				t.Errorf("%s: finish had %v, want at least %v", name, until.Sub(began), finishTime)
			}
			return c.finish
		})
		if !errors.Is(err, c.want) || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}
