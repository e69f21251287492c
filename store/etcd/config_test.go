package repriseetcd

import (
	"errors"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/reprise-go/reprise/core/store"
)

const servicePrefix = "orders/"

func TestNewRefusesWhatIsOutOfItsRange(t *testing.T) {
	t.Parallel()
	client := new(clientv3.Client)
	for name, row := range map[string]struct {
		client *clientv3.Client
		config Config
		says   string
	}{
		"no client":       {nil, Config{Prefix: servicePrefix}, "client"},
		"the zero config": {client, Config{}, `Config.Prefix is empty: it has no default, because it names the service whose records these are, such as "orders/"`},
		"a space":         {client, Config{Prefix: "my orders/"}, "Config.Prefix"},
	} {
		if _, err := New(row.client, row.config); !errors.Is(err, store.ErrInvalid) || !strings.Contains(err.Error(), row.says) {
			t.Errorf("%s: New: %v, want ErrInvalid about %q", name, err, row.says)
		}
		if _, err := Open(t.Context(), row.client, row.config); !errors.Is(err, store.ErrInvalid) {
			t.Errorf("%s: Open: %v, want ErrInvalid", name, err)
		}
	}
	if _, err := New(client, Config{Prefix: servicePrefix}); err != nil {
		t.Error(err)
	}
}

// A period and its record's share a lease if their ends are close, so that the record
// does not end first.
func TestRecordDoesNotEndBeforeItsAttempt(t *testing.T) {
	t.Parallel()
	for attempt := time.Second; attempt < 100*time.Minute; attempt += attempt / 3 {
		for remembered := time.Second; remembered < 100*time.Minute; remembered += remembered / 3 {
			periods := together(attempt, remembered)
			if periods[0] < attempt || periods[1] < remembered {
				t.Errorf("%v for a lease of %v and a retention of %v", periods, attempt, remembered)
			}
			if periods[0] != periods[1] && periods[1]-periods[0] < 2*sharing(periods[0]) {
				t.Errorf("%v are too close", periods)
			}
		}
	}
}
