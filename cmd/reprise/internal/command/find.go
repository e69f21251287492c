package command

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/reprise-go/reprise/core/operate"
	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/proxy"

	"github.com/reprise-go/reprise/cmd/reprise/internal/connect"
)

// maxKey bounds the length of a typed key: the longest that a policy may allow, quoted.
const maxKey = 2*4096 + 2

// find is the command "find".
func (c *session) find() *cobra.Command {
	var (
		scope, endpoint, key   string
		shared, only, revealed bool
		client                 findClient
	)
	cmd := &cobra.Command{
		Use:   "find",
		Short: "Find the record of a client's key",
		Long: `find derives the ID of a key on this machine and shows its record. It asks for the
key without echo, or reads it from standard input, with or without the quotes that
it has on the wire. It never prints or sends the key: a store knows only IDs.

  reprise find --scope tenant-17
  pbpaste | reprise find --scope tenant-17 --id-only

For requests through reprise proxy, pass its file, and the part of the request that
the scope is made of: the field, claims of the token, or the client's certificate.
The value of a field without one is asked for as the key is. In standard input it
is a line before the key.

  reprise find --config proxy.toml --field 'X-Tenant: acme'
  reprise find --config proxy.toml --field Authorization
  reprise find --config proxy.toml --claim iss=https://login.example --claim sub=17

The issuer (iss) of a token is a part of its scope.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case cmd.Flags().Changed("key") && key != "-":
				return usage("--key takes no key: others can see a command line. Leave it out, and type the key when asked, or pipe it into the program")
			case cmd.Flags().Changed("scope") && scope == "":
				return usage("--scope is empty, which no policy allows")
			case client.file == "" && client.described():
				return usage("--field, --claim and --certificate need --config, whose policies say which of them is the scope")
			case shared:
				scope = operate.SharedScope
			}
			spaces, first := []proxy.KeySpace{{Scope: scope, Endpoint: endpoint}}, "are --scope and --endpoint those of the policy, and "
			var key string
			var err error
			if client.file == "" {
				key, err = c.secret(cmd.Context(), keyQuestion, maxKey)
			} else {
				spaces, key, first, err = c.spaces(cmd.Context(), &client)
			}
			if err != nil {
				return err
			}
			places, err := placesOf(spaces, key)
			if err != nil {
				return err
			}
			if only {
				c.printPlaces(places)
				return nil
			}
			return c.withStore(func(ctx context.Context, st *connect.Store, _ []string) error {
				return c.showPlaces(ctx, st, places, first, revealed)
			})(cmd, args)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&scope, "scope", "", "the scope of the client, as the scope function of the policy returns it")
	flags.BoolVar(&shared, "unscoped", false, "the policy is Unscoped: all clients share the keys")
	flags.StringVar(&endpoint, "endpoint", "", "Config.Endpoint of the policy, if it has one")
	client.register(flags)
	flags.StringVar(&key, "key", "", "only \"-\": read the key from standard input")
	flags.BoolVar(&only, "id-only", false, "print the ID, and contact no store")
	flags.BoolVar(&revealed, "reveal", false, "also print the body of the answer")
	cmd.MarkFlagsOneRequired("scope", "unscoped", "config")
	cmd.MarkFlagsMutuallyExclusive("scope", "unscoped", "config")
	cmd.MarkFlagsMutuallyExclusive("endpoint", "config")
	return cmd
}

const keyQuestion = "Idempotency-Key (not shown): "

// secret asks for a line that is not shown, or reads up to limit bytes from standard
// input.
func (c *session) secret(ctx context.Context, question string, limit int) (string, error) {
	text, err := c.prompt.Secret(ctx, question, limit)
	switch {
	case ctx.Err() != nil:
		return "", &failure{code: ExitInterrupted}
	case err != nil:
		return "", usage("reading the key: %w", err)
	case len(text) >= longestTyped && c.prompt.Terminal() != nil:
		return "", usage("a terminal cuts a line after %d bytes: pipe it into the program", longestTyped)
	}
	return text, nil
}

// longestTyped is the length at which a terminal of Linux cuts a line.
const longestTyped = 4095

// place is the ID of a key where some policies look for it.
type place struct {
	ID       string   `json:"id"`
	Policies []string `json:"policies,omitempty"` // of the proxy's file

	id store.ID
}

func placesOf(spaces []proxy.KeySpace, key string) ([]place, error) {
	places := make([]place, len(spaces))
	for i, s := range spaces {
		id, err := operate.KeyID(s.Scope, s.Endpoint, key)
		if err != nil {
			return nil, usage("%w", err)
		}
		places[i] = place{id.String(), s.Policies, id}
	}
	return places, nil
}

func (c *session) printPlaces(places []place) {
	switch {
	case c.json && len(places) == 1:
		c.printJSON(places[0])
	case c.json:
		c.printJSON(places)
	case len(places) == 1:
		c.out.Line(places[0].ID)
	default:
		for _, p := range places {
			c.out.Line(p.ID, " ", strings.Join(p.Policies, ", "))
		}
	}
}

// showPlaces prints the records at these places, or fails if there is none. first is for
// noRecord.
func (c *session) showPlaces(ctx context.Context, st *connect.Store, places []place, first string, reveal bool) error {
	var (
		looked []string
		found  []store.Record
	)
	for _, p := range places {
		switch r, err := st.Look.Inspect(ctx, p.id); {
		case errors.Is(err, store.ErrNotFound):
			looked = append(looked, strings.Join(append([]string{p.ID}, p.Policies...), " "))
		case err != nil:
			return storeFailed(ctx, "reading the record "+p.id.Short(), err)
		default:
			found = append(found, r)
		}
	}
	switch {
	case len(found) == 0:
		return noRecord(ctx, st, "with the ID "+strings.Join(looked, " or "), first)
	case c.json && len(found) > 1:
		list := make([]showJSON, len(found))
		for i := range found {
			list[i] = newShowJSON(&found[i], nil, reveal)
		}
		c.printJSON(list)
		return nil
	}
	for i := range found {
		if i > 0 {
			c.out.Line()
		}
		c.printRecord(&found[i], nil, reveal)
	}
	return nil
}
