package reprisesqlite

import (
	"errors"
	"fmt"
	"testing"

	"github.com/reprise-go/reprise/core/store"
)

// The errors of drivers, as they have their codes.
type (
	withMethod struct{ code int }
	withField  struct{ Code code }
	code       uint16
)

func (e *withMethod) Error() string { return "method" }
func (e *withMethod) Code() int     { return e.code }
func (e withField) Error() string   { return "field" }

func TestErrorsOfDriversAreClassified(t *testing.T) {
	t.Parallel()
	for code, want := range map[int]struct{ statement, commit error }{
		1:                  {store.ErrMisconfigured, store.ErrUnknown}, // no such table
		codeBusy:           {store.ErrBusy, store.ErrBusy},
		codeBusy | 2<<8:    {store.ErrBusy, store.ErrBusy}, // SQLITE_BUSY_SNAPSHOT
		codeLocked:         {store.ErrBusy, store.ErrBusy},
		codeReadonly:       {store.ErrMisconfigured, store.ErrUnknown},
		10:                 {store.ErrUnavailable, store.ErrUnknown}, // SQLITE_IOERR
		codeCorrupt:        {store.ErrCorrupt, store.ErrUnknown},
		codeFull:           {store.ErrFull, store.ErrFull},
		codeNotADB:         {store.ErrMisconfigured, store.ErrUnknown},
		codeFull | 255<<24: {store.ErrFull, store.ErrFull},
	} {
		for _, err := range []error{&withMethod{code}, fmt.Errorf("wrapped: %w", &withMethod{code})} {
			if got := classify(err, false); !errors.Is(got, want.statement) {
				t.Errorf("%d of a statement: %v, want %v", code, got, want.statement)
			}
			if got := classify(err, true); !errors.Is(got, want.commit) {
				t.Errorf("%d of a commit: %v, want %v", code, got, want.commit)
			}
		}
	}
	if got := classify(withField{codeFull}, false); !errors.Is(got, store.ErrFull) {
		t.Errorf("a field: %v", got)
	}
	for committing, want := range map[bool]error{false: store.ErrUnavailable, true: store.ErrUnknown} {
		if got := classify(errors.New("no code"), committing); !errors.Is(got, want) {
			t.Errorf("no code: %v, want %v", got, want)
		}
	}
}
