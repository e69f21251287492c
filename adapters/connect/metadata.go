package repriseconnect

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"

	"connectrpc.com/connect"

	"github.com/reprise-go/reprise/core/protocol"
)

// metaOf returns the metadata of an error, which may be a variable that many calls
// return: [connect.Error.Meta] writes to it.
func metaOf(err *connect.Error) http.Header {
	own := *err
	return own.Meta()
}

// withoutControlFields returns an error whose metadata has no control fields. A wire
// error stays as it is: Connect sends no metadata of it, and would send that of a copy.
func withoutControlFields(x *protocol.Exchange, err error) error {
	var failed *connect.Error
	if !errors.As(err, &failed) || failed == nil || connect.IsWireError(failed) {
		return err
	}
	meta := metaOf(failed).Clone()
	if dropControlFields(x, meta); len(meta) == len(metaOf(failed)) {
		return err
	}
	own := connect.NewError(failed.Code(), failed.Unwrap())
	for _, d := range failed.Details() {
		own.AddDetail(d)
	}
	maps.Copy(own.Meta(), meta)
	return own
}

// metadata is the header and the trailer of the response in the context of a handler (see
// [connect.CallInfoForHandlerContext]). All layers share it, and a comparison of before
// and after finds the handler's additions.
type metadata struct {
	x                           *protocol.Exchange
	header, trailer             http.Header
	headerBefore, trailerBefore http.Header
}

// outerMetadata returns the metadata before the handler runs.
func outerMetadata(ctx context.Context, x *protocol.Exchange) *metadata {
	m := &metadata{x: x, header: http.Header{}, trailer: http.Header{}}
	if info, ok := connect.CallInfoForHandlerContext(ctx); ok {
		m.header, m.trailer = info.ResponseHeader(), info.ResponseTrailer()
	}
	m.headerBefore, m.trailerBefore = m.header.Clone(), m.trailer.Clone()
	return m
}

// added returns the handler's additions.
func (m *metadata) added() (header, trailer http.Header) {
	dropControlFields(m.x, m.header, m.trailer)
	return addedTo(m.headerBefore, m.header), addedTo(m.trailerBefore, m.trailer)
}

func addedTo(before, after http.Header) http.Header {
	added := http.Header{}
	for name, values := range after {
		if was := before[name]; len(was) <= len(values) && slices.Equal(was, values[:len(was)]) {
			values = values[len(was):]
		}
		if len(values) > 0 {
			added[name] = values
		}
	}
	return added
}

// restore removes the handler's additions.
func (m *metadata) restore() {
	clear(m.header)
	maps.Copy(m.header, m.headerBefore)
	clear(m.trailer)
	maps.Copy(m.trailer, m.trailerBefore)
}

// merge returns the values of both.
func merge(a, b http.Header) http.Header {
	all := a.Clone()
	for name, values := range b {
		all[name] = append(all[name], values...)
	}
	return all
}

// dropControlFields removes the control fields, which only the protocol sets (R11).
func dropControlFields(x *protocol.Exchange, headers ...http.Header) {
	for _, header := range headers {
		maps.DeleteFunc(header, func(name string, _ []string) bool { _, keep := x.Tidy(name, ""); return !keep })
	}
}
