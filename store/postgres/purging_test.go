package reprisepg

import (
	"errors"
	"testing"
	"time"

	"github.com/reprise-go/reprise/core/store"
)

// TestPurgerConfigAtItsBounds: the defaults, and the first values outside of each range.
func TestPurgerConfigAtItsBounds(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		config, want PurgerConfig
		ok           bool
	}{
		{PurgerConfig{}, PurgerConfig{Every: DefaultPurgeEvery, Batch: DefaultPurgeBatch, Timeout: DefaultPurgeTimeout}, true},
		{PurgerConfig{Every: time.Second, Batch: 1, Pause: 1, Timeout: 1}, PurgerConfig{Every: time.Second, Batch: 1, Pause: 1, Timeout: 1}, true},
		{PurgerConfig{Every: time.Hour, Batch: 100_000, Timeout: 1}, PurgerConfig{Every: time.Hour, Batch: 100_000, Timeout: 1}, true},
		{config: PurgerConfig{Every: time.Second - 1}},
		{config: PurgerConfig{Batch: -1}},
		{config: PurgerConfig{Batch: 100_001}},
		{config: PurgerConfig{Pause: -1}},
		{config: PurgerConfig{Timeout: -1}},
	} {
		got, err := test.config.withDefaults()
		if test.ok && (err != nil || got != test.want) || !test.ok && !errors.Is(err, store.ErrInvalid) {
			t.Errorf("%+v: %+v, %v; want %+v", test.config, got, err, test.want)
		}
	}
}
