package edges_test

import (
	"context"
	"testing"
)

// A handler that returns the error of another service does not expose its metadata, even
// if that error is a replay; nor does the replay of this handler.
func TestMetadataOfAnotherServiceIsNotSent(t *testing.T) {
	t.Parallel()
	eachCaller(t, func(t *testing.T, c caller) {
		if c.native {
			return // a server of grpc-go has no metadata in its errors
		}
		other := (&env{T: t, target: target{"another service", startConnect, connectDialer(false)}}).serve(setup{
			handler: always(outcome{code: 5, message: "gone", header: []pair{{"x-internal", "1"}}}),
		})
		other.call(t.Context(), keyed("k"))
		s := c.start(t, setup{handler: func(ctx context.Context, _ *request) outcome {
			return outcome{err: other.call(ctx, keyed("k")).err}
		}}, callerConfig{})
		first, again := s.twice(s.service, keyed("k"))
		for _, a := range []answer{first, again} {
			if a.code != 5 || a.message != "gone" || a.get("x-internal") != "" || a.get("x-outer") != "1" {
				t.Errorf("the client got %d %q with %v, %v", a.code, a.message, a.header, a.trailer)
			}
		}
	})
}
