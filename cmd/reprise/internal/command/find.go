package command

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/reprise-go/reprise/core/operate"
	"github.com/reprise-go/reprise/core/store"

	"github.com/reprise-go/reprise/cmd/reprise/internal/connect"
)

// maxKey bounds the length of a typed key: the longest that a policy may allow, quoted.
const maxKey = 2*4096 + 2

// find is the command "find".
func (c *session) find() *cobra.Command {
	var (
		scope, endpoint, key   string
		shared, only, revealed bool
	)
	cmd := &cobra.Command{
		Use:   "find",
		Short: "Find the record of a client's key",
		Long: `find derives the ID of a key on this machine and shows its record. It asks for the
key without echo, or reads it from standard input, with or without the quotes that
it has on the wire. It never prints or sends the key: a store knows only IDs.

  reprise find --scope tenant-17
  pbpaste | reprise find --scope tenant-17 --id-only`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case cmd.Flags().Changed("key") && key != "-":
				return usage("--key takes no key: others can see a command line. Leave it out, and type the key when asked, or pipe it into the program")
			case shared == cmd.Flags().Changed("scope"):
				return usage("pass --scope with the name that the scope function of the policy returns, or --unscoped if the policy is Unscoped")
			case cmd.Flags().Changed("scope") && scope == "":
				return usage("--scope is empty, which no policy allows")
			case shared:
				scope = operate.SharedScope
			}
			id, err := c.deriveID(cmd.Context(), scope, endpoint)
			if err != nil {
				return err
			}
			if only {
				if c.json {
					c.printJSON(map[string]string{"id": id.String()})
				} else {
					c.out.Line(id.String())
				}
				return nil
			}
			return c.withStore(func(ctx context.Context, store *connect.Store, _ []string) error {
				r, err := c.inspect(ctx, store, id, "are --scope and --endpoint those of the policy, and ")
				if err != nil {
					return err
				}
				c.printRecord(&r, nil, revealed)
				return nil
			})(cmd, args)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&scope, "scope", "", "the scope of the client, as the scope function of the policy returns it")
	flags.BoolVar(&shared, "unscoped", false, "the policy is Unscoped: all clients share the keys")
	flags.StringVar(&endpoint, "endpoint", "", "Config.Endpoint of the policy, if it has one")
	flags.StringVar(&key, "key", "", "only \"-\": read the key from standard input")
	flags.BoolVar(&only, "id-only", false, "print the ID, and contact no store")
	flags.BoolVar(&revealed, "reveal", false, "also print the body of the answer")
	return cmd
}

// deriveID reads a key and returns the ID of its operation.
func (c *session) deriveID(ctx context.Context, scope, endpoint string) (store.ID, error) {
	text, err := c.prompt.Secret(ctx, "Idempotency-Key (not shown): ", maxKey)
	switch {
	case ctx.Err() != nil:
		return store.ID{}, &failure{code: ExitInterrupted}
	case err != nil:
		return store.ID{}, usage("reading the key: %w", err)
	}
	id, err := operate.KeyID(scope, endpoint, text)
	if err != nil {
		return id, usage("%w", err)
	}
	return id, nil
}
