package repriseetcd

import (
	"fmt"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/reprise-go/reprise/core/store"
)

// classes are the classes of the errors of a server that did not execute a request.
var classes = []struct {
	answer error
	class  error
}{
	{rpctypes.ErrNoSpace, store.ErrFull}, // but see Store.refused
	{rpctypes.ErrTooManyRequests, store.ErrUnavailable},
	{rpctypes.ErrNoLeader, store.ErrUnavailable},
	{rpctypes.Error(rpctypes.ErrGRPCNotSupportedForLearner), store.ErrUnavailable},
	{rpctypes.ErrCorrupt, store.ErrUnavailable},
	{rpctypes.ErrRequestTooLarge, store.ErrMisconfigured},
	{rpctypes.ErrPermissionDenied, store.ErrMisconfigured},
	{rpctypes.ErrPermissionNotGranted, store.ErrMisconfigured},
	{rpctypes.ErrAuthFailed, store.ErrMisconfigured},
	{rpctypes.ErrUserEmpty, store.ErrMisconfigured},
	{rpctypes.ErrInvalidAuthToken, store.ErrMisconfigured},
	{rpctypes.ErrAuthOldRevision, store.ErrUnavailable},
}

// classify returns the error of a request, which wraps a sentinel of package store. When
// in doubt, it is ErrUnknown: the request may have been executed. That includes a request
// whose connection broke after [Store.ready], because its error does not show whether it
// was sent.
func classify(err error) error {
	if err == nil {
		return nil
	}
	for _, c := range classes {
		if answered(err, c.answer) {
			return fail(c.class, err)
		}
	}
	return fail(store.ErrUnknown, err)
}

// answered reports whether err is this answer of a server.
func answered(err, answer error) bool {
	return err != nil && rpctypes.Error(err).Error() == answer.Error()
}

// fail wraps cause once, as an error of class.
func fail(class, cause error) error {
	return fmt.Errorf("%w: etcd: %v", class, cause) //nolint:errorlint // one class an error, the cause is for people
}

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: etcd store: %s", store.ErrInvalid, fmt.Sprintf(format, args...))
}
