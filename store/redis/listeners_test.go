package repriseredis

import (
	"errors"
	"testing"
	"time"

	"github.com/reprise-go/reprise/core/store"
)

// When the silence is over, or a confirmation came late, watches work again.
func TestAWatchIsTriedAgain(t *testing.T) {
	t.Parallel()
	confirmation := func() string {
		return "*3\r\n" + bulk("ssubscribe") + bulk("a") + ":1\r\n"
	}
	client, s := denying(t, func(call int) string {
		if call == 1 {
			return "-NOPERM No permissions to access a channel\r\n"
		}
		return confirmation()
	})
	if _, _, err := s.watch(t.Context(), client, "a"); !errors.Is(err, store.ErrUnavailable) {
		t.Fatalf("watch: %v, want ErrUnavailable", err)
	}
	var first *listener
	for _, l := range s.byServer {
		first = l
		l.mu.Lock()
		l.silentAt = time.Now().Add(-silence)
		l.mu.Unlock()
	}
	_, stop, err := s.watch(t.Context(), client, "a")
	if err != nil {
		t.Fatalf("watch after the silence: %v", err)
	}
	defer stop()
	if !first.isOver() {
		t.Error("the listener that was not confirmed is still there")
	}
	for _, l := range s.byServer {
		l.missConfirmation()
		l.confirm("any")
	}
	if _, stop, err := s.watch(t.Context(), client, "a"); err != nil {
		t.Errorf("watch after a late confirmation: %v", err)
	} else {
		stop()
	}
}
