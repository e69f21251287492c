package repriseecho

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/reprise-go/reprise/adapters/internal/stdhttp"
	"github.com/reprise-go/reprise/core/protocol"
)

// writer is the response of a recorded handler, with that of Echo in the same allocation.
type writer struct {
	stdhttp.Writer

	response echo.Response
}

func newWriter(c echo.Context, x *protocol.Exchange) *writer {
	outer := c.Response()
	w := &writer{Writer: stdhttp.Writer{Behind: outer.Writer}}
	w.response = *echo.NewResponse(w, c.Echo())
	w.response.Status = outer.Status
	w.Start(x, outer.Header(), wire{outer}, http.DetectContentType)
	return w
}

// wire writes to the response of the layers outside, which runs their hooks and counts
// the bytes.
type wire struct{ *echo.Response }

// WriteHeader implements [protocol.Wire].
func (w wire) WriteHeader(status int) {
	if status < http.StatusOK && status != http.StatusSwitchingProtocols {
		w.Writer.WriteHeader(status) // Echo's response takes any status as the final one
		return
	}
	w.Response.WriteHeader(status)
}
