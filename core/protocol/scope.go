package protocol

import (
	"errors"
	"fmt"

	"github.com/reprise-go/reprise/core/protocol/internal/record"
	"github.com/reprise-go/reprise/core/store"
)

// ErrUnscoped is the error with which a scope function puts a key in the one key space
// that all clients share. Anyone who learns another client's key can then replay its
// response. Every adapter's Unscoped returns it.
var ErrUnscoped = errors.New("reprise: the key space is shared by all clients")

// Why a scope is refused.
var (
	errScopeEmpty   = fmt.Errorf("%w: the scope function returned an empty name", store.ErrInvalid)
	errScopeControl = fmt.Errorf("%w: the scope function returned a name with a control byte", store.ErrInvalid)
)

// principalOf returns the name that scope returns, or why it is refused.
func principalOf(scope func() (string, error)) (name string, err error) {
	defer recovered("the scope function", &err)
	name, err = scope()
	switch {
	case errors.Is(err, ErrUnscoped):
		return record.SharedScope, nil
	case err != nil:
		return "", err
	case name == "":
		return "", errScopeEmpty
	}
	for i := range len(name) {
		if name[i] < ' ' || name[i] == 0x7f {
			return "", errScopeControl
		}
	}
	return name, nil
}
