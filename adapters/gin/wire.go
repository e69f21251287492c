package reprisegin

import (
	"net/http"

	"github.com/gin-gonic/gin"
)

// wire writes to the writer of the layers outside, in the way in which the chain wrote.
type wire struct {
	gin.ResponseWriter

	now   bool // the chain wrote the header, which Gin's WriteHeader leaves to the first byte
	empty bool // it wrote a body without a byte
}

// WriteHeader implements [protocol.Wire].
func (w *wire) WriteHeader(status int) {
	if status < http.StatusOK && status != http.StatusSwitchingProtocols {
		w.inform(status)
		return
	}
	w.ResponseWriter.WriteHeader(status)
	switch {
	case w.now:
		w.WriteHeaderNow()
	case w.empty:
		_, _ = w.Write(nil)
	}
}

// inform sends an informational status past Gin's writers, whose final status would be
// 200 from then on, whatever the reply becomes. It is lost where a writer cannot be
// passed.
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
