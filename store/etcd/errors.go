package repriseetcd

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/reprise-go/reprise/core/store"
)

// classes are the answers of a server that did not execute a request.
var classes = []struct {
	answer error
	class  error
}{
	{rpctypes.ErrNoSpace, store.ErrFull},
	{rpctypes.ErrTooManyRequests, store.ErrUnavailable},
	{rpctypes.ErrNoLeader, store.ErrUnavailable},
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
// doubt the request may have been executed.
func classify(err error) error {
	if err == nil {
		return nil
	}
	known := rpctypes.Error(err)
	for _, c := range classes {
		if errors.Is(known, c.answer) || known.Error() == c.answer.Error() {
			return fail(c.class, err)
		}
	}
	switch {
	case errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded):
		return fail(store.ErrUnknown, err)
	case status.Code(err) == codes.Unavailable && strings.Contains(err.Error(), "rror while dialing"):
		return fail(store.ErrUnavailable, err) // there was no connection to send it on
	default:
		return fail(store.ErrUnknown, err)
	}
}

// leaseGone reports whether a request was refused because it named a lease that the
// server does not know.
func leaseGone(err error) bool {
	return err != nil && rpctypes.Error(err).Error() == rpctypes.ErrLeaseNotFound.Error()
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
