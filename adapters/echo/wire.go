package repriseecho

import (
	"net/http"

	"github.com/labstack/echo/v4"
)

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
