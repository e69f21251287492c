package repriseclient

import (
	"net/http"
	"strings"
	"time"
)

// longestRetryAfter, one year, replaces any longer Retry-After.
const longestRetryAfter = 365 * 24 * time.Hour

// retryAfter returns how long the field Retry-After asks to wait, from now on: its
// seconds, or the time until its date, measured from the response's own Date where it has
// one, so that the clocks of client and service need not agree. It returns false for a
// field that is absent or invalid (RFC 9110, 10.2.3).
func retryAfter(h http.Header, now time.Time) (time.Duration, bool) {
	value := strings.Trim(h.Get("Retry-After"), " \t")
	if value == "" {
		return 0, false
	}
	if seconds, ok := seconds(value); ok {
		return seconds, true
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return 0, false
	}
	if sent, err := http.ParseTime(h.Get("Date")); err == nil {
		now = sent
	}
	return min(max(at.Sub(now), 0), longestRetryAfter), true
}

// seconds parses any number of digits.
func seconds(value string) (time.Duration, bool) {
	var n time.Duration
	for i := range len(value) {
		if value[i] < '0' || value[i] > '9' {
			return 0, false
		}
		n = min(n*10+time.Duration(value[i]-'0'), longestRetryAfter/time.Second)
	}
	return n * time.Second, true
}
