package sqlstore

import (
	"errors"
	"fmt"
	"testing"
)

type numbered struct{ Number uint16 }

func (numbered) Error() string { return "of the server" }

func TestCodeIsFoundInEveryWrapping(t *testing.T) {
	t.Parallel()
	for _, err := range []error{
		numbered{1205},
		&numbered{1205},
		execError{&numbered{1205}},
		fmt.Errorf("wrapped: %w", &numbered{1205}),
		errors.Join(&numbered{1205}, nil), errors.Join(errors.New("other"), execError{numbered{1205}}),
	} {
		if code, ok := Code(err, "Number"); !ok || code != 1205 {
			t.Errorf("%T: %d, %t", err, code, ok)
		}
	}
	for _, err := range []error{nil, errors.New("other"), errors.Join(errors.New("other"))} {
		if code, ok := Code(err, "Number"); ok {
			t.Errorf("%T: %d", err, code)
		}
	}
}
