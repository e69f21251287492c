package serve

import (
	"crypto/rand"
	"net/http"
	"strings"

	"github.com/reprise-go/reprise/conformance"
)

// outer is what the layer outside of the middleware sets on a response, anew for each request.
type outer struct {
	fields []conformance.Pair // field lines, each instead of what is there under its name
	status int                // to preset where the framework can express it; 0: none
}

// newOuter returns what to set for a request to path. Origin is the value of the request's field, empty without one.
func newOuter(path, origin string) outer {
	id := rand.Text()
	o := outer{fields: []conformance.Pair{{"X-Request-Id", id}, {"Set-Cookie", "outer=" + id + "; Path=/"}}}
	if origin != "" {
		o.fields = append(o.fields, conformance.Pair{"Access-Control-Allow-Origin", origin})
	}
	if strings.HasPrefix(path, "/t/") {
		o.status = http.StatusAccepted
	}
	return o
}
