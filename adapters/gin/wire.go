package reprisegin

import (
	"net/http"
	"reflect"

	"github.com/gin-gonic/gin"
)

// wire writes to the writer of the layers outside.
type wire struct {
	gin.ResponseWriter

	now bool // the chain wrote the header, which Gin's WriteHeader leaves to the first byte
}

// WriteHeader implements [protocol.Wire].
func (w *wire) WriteHeader(status int) {
	if status < http.StatusOK && status != http.StatusSwitchingProtocols {
		w.inform(status)
		return
	}
	w.ResponseWriter.WriteHeader(status)
	if w.now && passesHeader(w.ResponseWriter) {
		w.WriteHeaderNow()
	}
}

// ginWriter is the type of Gin's own writer, which Gin does not export.
var ginWriter = reflect.TypeOf(new(gin.Context).Copy().Writer)

// passesHeader reports whether WriteHeaderNow of w does no more than its name says. A
// layer's writer, such as one that compresses, usually inherits the method from the
// writer behind it: calling it would send the header before that layer has decided about
// it.
func passesHeader(w gin.ResponseWriter) bool {
	_, nested := w.(*writer)
	return nested || reflect.TypeOf(w) == ginWriter
}

// inform sends an informational status past Gin's writers, which take any status as the
// final one. It is lost where a writer cannot be passed.
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
