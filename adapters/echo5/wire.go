package repriseecho5

import (
	"net/http"

	"github.com/labstack/echo/v5"

	"github.com/reprise-go/reprise/adapters/internal/stdhttp"
	"github.com/reprise-go/reprise/core/protocol"
)

// writer is the response of a recorded handler, with that of Echo and the wire in the
// same allocation.
type writer struct {
	stdhttp.Writer

	response echo.Response
	wire     wire
}

func newWriter(c *echo.Context, x *protocol.Exchange) *writer {
	outer := c.Response()
	w := &writer{Writer: stdhttp.Writer{Behind: outer}, wire: wire{outer}}
	if own, ok := outer.(*echo.Response); ok {
		w.Behind = own.ResponseWriter // whose flush panics where it is not supported
	}
	w.response = *echo.NewResponse(w, c.Logger())
	if preset, err := echo.UnwrapResponse(outer); err == nil {
		w.response.Status = preset.Status
	}
	w.Start(x, outer.Header(), &w.wire, http.DetectContentType)
	return w
}

// wire is the response of the layers outside, which runs their hooks and counts the
// bytes.
type wire struct{ http.ResponseWriter }

// WriteHeader implements [protocol.Wire].
func (w *wire) WriteHeader(status int) {
	to := w.ResponseWriter
	if status < http.StatusOK && status != http.StatusSwitchingProtocols {
		if response, err := echo.UnwrapResponse(to); err == nil {
			to = response.ResponseWriter // Echo's response takes any status as the final one
		}
	}
	to.WriteHeader(status)
}
