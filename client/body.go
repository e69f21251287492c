package repriseclient

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
)

// requestBody is the body of a call, for all of its attempts.
type requestBody struct {
	first  io.ReadCloser                 // of the first attempt
	again  func() (io.ReadCloser, error) // of every other; nil: it cannot be sent again
	length int64                         // Request.ContentLength
}

// openBody takes over the body of req: from GetBody where the request has it, otherwise
// buffered up to limit bytes. A longer body, and any other where limit is negative, can
// be sent once.
func openBody(req *http.Request, limit int64) (requestBody, error) {
	b := requestBody{first: req.Body, length: req.ContentLength}
	switch {
	case req.Body == nil || req.Body == http.NoBody:
		b.again = func() (io.ReadCloser, error) { return req.Body, nil }
	case req.GetBody != nil:
		b.again = req.GetBody
	case limit >= 0 && req.ContentLength <= limit:
		return bufferBody(req, limit)
	}
	return b, nil
}

func bufferBody(req *http.Request, limit int64) (requestBody, error) {
	ctx := req.Context()
	stop := context.AfterFunc(ctx, func() { _ = req.Body.Close() }) // ends a Read that would outlast the call
	read, more, err := readUpTo(req.Body, limit)
	switch stopped := stop(); {
	case !stopped:
		return requestBody{}, context.Cause(ctx)
	case err != nil:
		return requestBody{}, errors.Join(fmt.Errorf("read the request body: %w", err), req.Body.Close())
	case more:
		return requestBody{first: restored(read, nil, req.Body), length: req.ContentLength}, nil
	}
	if err := req.Body.Close(); err != nil {
		return requestBody{}, fmt.Errorf("close the request body: %w", err)
	}
	if declared := req.ContentLength; declared > 0 && declared != int64(len(read)) {
		return requestBody{}, fmt.Errorf("the request body has %d bytes, and ContentLength is %d", len(read), declared)
	}
	again := func() (io.ReadCloser, error) {
		if len(read) == 0 {
			return http.NoBody, nil
		}
		return io.NopCloser(bytes.NewReader(read)), nil
	}
	b := requestBody{again: again, length: int64(len(read))}
	b.first, _ = again()
	if len(req.Trailer) > 0 && len(read) > 0 {
		b.length = -1 // HTTP/1.1 sends trailers only behind chunks
	}
	return b, nil
}

// of returns the body of attempt n.
func (b *requestBody) of(n int) (io.ReadCloser, error) {
	if n == 1 {
		return b.first, nil
	}
	body, err := b.again()
	if err != nil {
		return nil, bodyError{fmt.Errorf("get the request body again: %w", err)}
	}
	return body, nil
}

// bodyError is the error of a GetBody.
type bodyError struct{ error }

func (e bodyError) Unwrap() error { return e.error }

// closeBody closes the body of a request that is not sent, as a RoundTripper must.
func closeBody(body io.ReadCloser) {
	if body != nil {
		_ = body.Close()
	}
}
