package command

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// A quantile beyond the last boundary of a histogram would look like that boundary.
func TestBucketsOfTheProxyReachPastItsTimeouts(t *testing.T) {
	t.Parallel()
	m, err := newMeters()
	must(t, err)
	m.around(http.NotFoundHandler()).ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", http.NoBody))
	families, err := m.registry.Gather()
	must(t, err)
	for _, family := range families {
		if family.GetName() != "reprise_proxy_request_seconds" {
			continue
		}
		buckets := family.GetMetric()[0].GetHistogram().GetBucket()
		if last := buckets[len(buckets)-1].GetUpperBound(); last <= maxRun.Seconds() {
			t.Errorf("the last bucket ends at %v s", last)
		}
		return
	}
	t.Error("the histogram is missing")
}
