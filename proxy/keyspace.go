package proxy

import (
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/reprise-go/reprise/core/operate"
	"github.com/reprise-go/reprise/core/protocol"
)

// KeySpace is where policies look for the keys of a client: the ID of a record is derived
// from both fields and the key.
type KeySpace struct {
	Scope    string // as [operate.KeyID] takes it
	Endpoint string
	Policies []string // that look there, by their names
}

// KeySpaces returns where the policies of c look for the keys of a client that sends r,
// of which only the header and the certificate count. An operator finds a record by it,
// without knowing which policy the request had. unknown has each policy for whose scope r
// has no value, with the scope: a record of one of these is in none of the spaces.
func (c Config) KeySpaces(r *http.Request) (spaces []KeySpace, unknown []string, err error) {
	for _, p := range c.Policies() {
		if p.Unkeyed {
			continue
		}
		if p.Scope.of == nil {
			return nil, nil, fmt.Errorf("proxy: policy %q: the scope is missing, %w", p.Name, errNotation)
		}
		scope, err := p.Scope.of(r)
		switch {
		case errors.Is(err, protocol.ErrUnscoped):
			scope = operate.SharedScope
		case err != nil:
			unknown = append(unknown, fmt.Sprintf("%s (scope %s)", p.Name, p.Scope))
			continue
		}
		at := slices.IndexFunc(spaces, func(s KeySpace) bool { return s.Scope == scope && s.Endpoint == p.Endpoint })
		if at < 0 {
			at = len(spaces)
			spaces = append(spaces, KeySpace{Scope: scope, Endpoint: p.Endpoint})
		}
		spaces[at].Policies = append(spaces[at].Policies, p.Name)
	}
	return spaces, unknown, nil
}
