package reprisepg

import (
	"errors"
	"testing"
	"time"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/store/internal/upkeep"
)

// TestPurgingAtItsBounds: the defaults, and the first values outside of each range.
func TestPurgingAtItsBounds(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		config Purging
		want   upkeep.Pace
		ok     bool
	}{
		{Purging{}, upkeep.Pace{Every: DefaultPurgeEvery, Batch: DefaultPurgeBatch, Timeout: DefaultPurgeTimeout}, true},
		{Purging{Every: time.Second, Batch: 1, Pause: 1, Timeout: 1}, upkeep.Pace{Every: time.Second, Batch: 1, Pause: 1, Timeout: 1}, true},
		{Purging{Every: -1, Batch: 100_000}, upkeep.Pace{Every: -1, Batch: 100_000, Timeout: DefaultPurgeTimeout}, true},
		{config: Purging{Every: time.Second - 1}},
		{config: Purging{Batch: -1}},
		{config: Purging{Batch: 100_001}},
		{config: Purging{Pause: -1}},
		{config: Purging{Timeout: -1}},
	} {
		o, err := Config{Purge: test.config}.options()
		if test.ok && (err != nil || o.Purge != test.want) || !test.ok && !errors.Is(err, store.ErrInvalid) {
			t.Errorf("%+v: %+v, %v; want %+v", test.config, o.Purge, err, test.want)
		}
	}
}
