package command

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/reprise-go/reprise/core/store"

	"github.com/reprise-go/reprise/cmd/reprise/internal/connect"
)

// A completion ends with so many names, or after a time: a page of a store that has the
// keys of others may be empty.
const (
	completed     = 1000
	completedTime = 5 * time.Second
)

// completing returns a completion for a shell from the records of the store. name returns
// what may stand on the command line for a record, and a tab and a description if it has
// one; an empty text is none. It is silent where the store cannot be read.
func (c *session) completing(query func(typed string) store.Query, name func(typed string, r *store.Record) string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) (names []string, _ cobra.ShellCompDirective) {
		q := query(typed)
		q.Limit = completed
		if len(args) > 0 || c.settings.Complete(cmd.Flags(), c.streams.Getenv) != nil || q.Validate() != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		st, err := connect.Open(cmd.Context(), &c.settings)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		defer st.Close()
		ctx, cancel := context.WithTimeout(cmd.Context(), completedTime)
		defer cancel()
		known := map[string]bool{"": true}
		for more := true; more && len(names) < completed; more = q.After != "" {
			page, err := st.Look.List(ctx, q)
			if err != nil {
				break
			}
			for i := range page.Records {
				if n := name(typed, &page.Records[i]); !known[n] {
					known[n] = true
					names = append(names, n)
				}
			}
			q.After = page.Next
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

// completingIDs completes the ID of a record.
func (c *session) completingIDs() cobra.CompletionFunc {
	return c.completing(
		func(typed string) store.Query { return store.Query{Digits: strings.ToLower(typed)} },
		func(typed string, r *store.Record) string {
			id := r.ID.Short()
			if len(typed) > len(id) {
				id = r.ID.String()
			}
			return id + "\t" + strings.TrimSpace(r.State.String()+" "+r.Label)
		})
}

// completingLabels completes the label of records.
func (c *session) completingLabels() cobra.CompletionFunc {
	return c.completing(
		func(string) store.Query { return store.Query{} },
		func(_ string, r *store.Record) string { return r.Label })
}
