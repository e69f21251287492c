package repriseetcd

import (
	"errors"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/reprise-go/reprise/core/store"
)

func TestNewRefusesWhatIsOutOfItsRange(t *testing.T) {
	t.Parallel()
	client := new(clientv3.Client)
	for name, make := range map[string]func() (*Store, error){
		"no client":     func() (*Store, error) { return New(nil, Config{}) },
		"a long prefix": func() (*Store, error) { return New(client, Config{Prefix: strings.Repeat("p", maxPrefix+1)}) },
	} {
		if _, err := make(); !errors.Is(err, store.ErrInvalid) {
			t.Errorf("%s: %v, want ErrInvalid", name, err)
		}
	}
	if _, err := New(client, Config{Prefix: strings.Repeat("p", maxPrefix)}); err != nil {
		t.Errorf("the longest prefix: %v", err)
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
