package protocol

import "time"

// How long a client is asked to wait before it tries again. A running request is mostly
// done soon; a store needs a moment to recover.
const (
	retryRunning = time.Second
	retryStore   = 2 * time.Second
	retryLongest = 10 * time.Second
)

// retryInProgress returns how long the client of an operation in progress waits before it
// asks again. Its owner renews the lease in every third of it, so half of it is gone only
// where the owner does not run any more, or cannot reach the store:
//
//	rest of the lease               wait
//	unknown: the owner runs here    1 s
//	more than half                  1 s
//	up to half                      that rest, at least 1 s and at most 10 s
//
// A lease is that of this engine; if another one has shorter leases, its clients wait for
// no more than one of them.
func retryInProgress(rest, lease time.Duration) time.Duration {
	if rest <= 0 || rest > lease/2 {
		return retryRunning
	}
	return min(max(rest, retryRunning), retryLongest)
}
