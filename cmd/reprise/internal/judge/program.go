package judge

import (
	"encoding/json"
	"strings"

	"github.com/reprise-go/reprise/cmd/reprise/internal/judge/wire"
)

// A cooperating endpoint follows the [program] of a request in each run, and marks
// the answer of the run. Neither field is part of the request that a key is bound to.
const (
	programField = "X-Test-Program" // of a request: a program as JSON
	runField     = "X-Exec"         // of an answer: a value that no other run of the endpoint has
)

// program is the behaviour of a cooperating endpoint in one run.
type program struct {
	Status    int         `json:"status,omitempty"`
	DelayMS   int         `json:"delay_ms,omitempty"`
	Headers   [][2]string `json:"headers,omitempty"`
	Body      []byte      `json:"body_base64,omitempty"`
	BodySize  int         `json:"body_size,omitempty"` // of a body of any bytes
	Behaviour string      `json:"behaviour,omitempty"` // "abort": cut the connection within the answer
}

// abortBehaviour is the behaviour of an endpoint that breaks off.
const abortBehaviour = "abort"

// told returns the request with a program. An endpoint that does not know programs
// ignores it.
func told(c wire.Call, p program) wire.Call {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(p) // every field has a JSON form
	return c.Set(programField, strings.TrimSpace(b.String()))
}
