package repriseecho5

import (
	"net/http"

	"github.com/labstack/echo/v5"

	"github.com/reprise-go/reprise/adapters/internal/stdhttp"
)

// writer is the response of a recorded handler, with the wire in the same allocation.
type writer struct {
	stdhttp.Writer

	wire wire
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
