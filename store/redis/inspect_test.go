package repriseredis

import (
	"errors"
	"testing"

	"github.com/reprise-go/reprise/core/store"
)

// The repetition of a resolution finds a record that has changed: the lost first one may
// have done it.
func TestAResolutionWhoseReplyWasLostIsUnknown(t *testing.T) {
	t.Parallel()
	for first, want := range map[string]error{
		cut:                                 store.ErrUnknown,
		"-LOADING\r\n":                      store.ErrRecordChanged,
		"-NOSCRIPT No matching script.\r\n": store.ErrRecordChanged,
	} {
		f := newFake(t, func(_, call int, _ []string) string {
			if call == 1 {
				return first
			}
			return bulk("N")
		})
		err := newStore(t, f, Config{}).Resolve(t.Context(), store.ID{}, store.Resolution{Fence: 1, Forget: true})
		if !errors.Is(err, want) {
			t.Errorf("after %q: %v, want %v", first, err, want)
		}
	}
}
