package reprisegin

import (
	"net/http"

	"github.com/gin-gonic/gin"
)

// wire writes through Gin's writer, header at once: nothing may change the status after it was recorded.
type wire struct {
	gin.ResponseWriter

	sent bool
}

// WriteHeader implements [protocol.Wire].
func (w *wire) WriteHeader(status int) {
	if status < http.StatusOK && status != http.StatusSwitchingProtocols {
		w.inform(status)
		return
	}
	w.sent = true
	w.ResponseWriter.WriteHeader(status)
	w.WriteHeaderNow()
}

// inform sends an informational status past Gin's writers, which take any status as the final one. Behind one that cannot be passed it is lost.
func (w *wire) inform(status int) {
	var behind http.ResponseWriter = w.ResponseWriter
	for {
		if _, own := behind.(gin.ResponseWriter); !own {
			behind.WriteHeader(status)
			return
		}
		unwrapper, ok := behind.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			return
		}
		behind = unwrapper.Unwrap()
	}
}
