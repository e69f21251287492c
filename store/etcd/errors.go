package repriseetcd

import (
	"fmt"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/reprise-go/reprise/core/store"
)

// classes are the answers of a server that did not execute a request.
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

// classify returns the error of a request, as one of the sentinels of package store. In
// doubt the request may have been executed. That includes one for which no connection was
// found: the client waits for it until the context ends, and its error does not tell.
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

// answered reports whether err is an answer of a server.
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

func misconfigured(format string, args ...any) error {
	return fmt.Errorf("%w: etcd store: %s", store.ErrMisconfigured, fmt.Sprintf(format, args...))
}
