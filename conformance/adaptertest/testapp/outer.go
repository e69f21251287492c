package testapp

import (
	"crypto/rand"
	"encoding/json"
	"io"
	"net/http"
	"strings"

	"github.com/reprise-go/reprise/conformance/adaptertest"
)

// Outer is the fields and cookies that the layer outside of the middleware sets on a
// response, built anew for each request.
type Outer struct {
	Fields []adaptertest.Pair // field lines that replace those of the same name
	Status int                // to preset where the framework can express it; 0: none
}

// NewOuter returns the Outer of a request to path. Origin is the value of the request's
// field, empty without one.
func NewOuter(path, origin string) Outer {
	id := rand.Text()
	o := Outer{Fields: []adaptertest.Pair{{"X-Request-Id", id}, {"Set-Cookie", "outer=" + id + "; Path=/"}, {"X-Powered-By", "outer"}}}
	if origin != "" {
		o.Fields = append(o.Fields, adaptertest.Pair{"Access-Control-Allow-Origin", origin})
	}
	if strings.HasPrefix(path, "/t/") {
		o.Status = http.StatusAccepted
	}
	return o
}

// ReadBody is the layer outside of the middleware that the app's OuterBody asks for. bind
// binds the body in the framework's own way.
func (a *App) ReadBody(body io.Reader, bind func()) {
	switch a.OuterBody {
	case adaptertest.Drains:
		_, _ = io.Copy(io.Discard, body)
	case adaptertest.Binds:
		bind()
	case adaptertest.Decodes:
		_ = json.NewDecoder(body).Decode(new(any))
	}
}
