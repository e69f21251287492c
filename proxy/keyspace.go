package proxy

import (
	"errors"
	"fmt"
	"net/http"

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

// KeySpaces returns where the policies of c look for the keys of a client that sends r, of
// which only the header and the certificate count. An operator finds a record by it,
// without knowing which policy the request had. The error names the scopes that r has no
// value for, if no policy can tell whose key it has.
func (c Config) KeySpaces(r *http.Request) ([]KeySpace, error) {
	var (
		spaces []KeySpace
		lacks  []error
	)
	for i, p := range append([]Policy{c.Default}, c.Routes...) {
		if p.Unkeyed {
			continue
		}
		if p.Scope.of == nil {
			p.Scope = c.Scope
		}
		if p.Scope.of == nil {
			return nil, fmt.Errorf("proxy: policy %q: the scope is missing, %w", p.name(i), errNotation)
		}
		scope, err := p.Scope.of(r)
		switch {
		case errors.Is(err, protocol.ErrUnscoped):
			scope = operate.SharedScope
		case err != nil:
			lacks = append(lacks, fmt.Errorf("policy %q has the scope %s", p.name(i), p.Scope))
			continue
		}
		known := false
		for j := range spaces {
			if known = spaces[j].Scope == scope && spaces[j].Endpoint == p.Endpoint; known {
				spaces[j].Policies = append(spaces[j].Policies, p.name(i))
				break
			}
		}
		if !known {
			spaces = append(spaces, KeySpace{scope, p.Endpoint, []string{p.name(i)}})
		}
	}
	if len(spaces) == 0 && len(lacks) > 0 {
		return nil, fmt.Errorf("proxy: the client's scope is not known: %w", errors.Join(lacks...))
	}
	return spaces, nil
}

// name returns the name of policy i. Policy 0 is that of all other requests.
func (p *Policy) name(i int) string {
	switch {
	case p.Name != "":
		return p.Name
	case i == 0:
		return "default"
	}
	return fmt.Sprintf("route-%d", i)
}
