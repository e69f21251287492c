package command

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/proxy"

	"github.com/reprise-go/reprise/cmd/reprise/internal/ui"
)

// policyFlags has the flags for a file with policies, and those for a single policy
// without a file.
type policyFlags struct {
	file string
	own  proxy.Config // of the flags
}

// register adds the flags to cmd.
func (f *policyFlags) register(cmd *cobra.Command) {
	fs := cmd.Flags()
	scope := func(notation string) error { return f.own.Scope.UnmarshalText([]byte(notation)) }
	chosen := func(notation string) func(string) error {
		return func(value string) error {
			if value != "true" {
				return errors.New("this flag takes no value: pass it, or leave it out")
			}
			return scope(notation)
		}
	}
	fs.StringVar(&f.file, "config", "", "a `file` with a policy per route, in place of --upstream, --upstream-aware, --required, --trusted, the scope and the bounds of requests")
	fs.Func("upstream", "the `URL` of the service: http://, https:// or h2c:// (HTTP/2 without TLS), a host and a port", func(url string) error {
		return f.own.Upstream.UnmarshalText([]byte(url))
	})
	fs.Func("scope-header", "a key belongs to the value of the request header `NAME`, which is hashed", func(name string) error { return scope("header:" + name) })
	fs.Func("scope-unverified-claim", "a key belongs to the claim `NAME` of the bearer token, which another layer has verified", func(name string) error {
		return scope("unverified-claim:" + name)
	})
	fs.BoolFunc("scope-certificate", "a key belongs to the names in the client's certificate (--tls-client-ca)", chosen(byCertificate))
	fs.BoolFunc("unscoped", "all clients share one key space", chosen("unscoped"))
	fs.BoolVar(&f.own.Default.Required, "required", false, "refuse a POST or PATCH without a key")
	fs.BoolVar(&f.own.Default.UpstreamAware, "upstream-aware", false, "pass on responses that the service marks as its own replays")
	fs.Func("trusted", "believe X-Forwarded-* of peers with these `addresses`, such as 10.0.0.0/8", func(list string) error {
		for text := range strings.SplitSeq(list, ",") {
			var prefix proxy.Prefix
			if err := prefix.UnmarshalText([]byte(text)); err != nil {
				return err
			}
			f.own.Trusted = append(f.own.Trusted, prefix)
		}
		return nil
	})
	fs.DurationVar((*time.Duration)(&f.own.BodyTimeout), "body-timeout", 0, "bounds the body of a request with a key, beside --min-rate (default 10s)")
	fs.DurationVar((*time.Duration)(&f.own.WriteTimeout), "write-timeout", 0, "bounds each write to a client, beside --min-rate (default 30s)")
	fs.IntVar(&f.own.MinRate, "min-rate", 0, "the least `bytes` a second of both (default 16384)")
	fs.IntVar(&f.own.MaxRequests, "max-requests", 0, "how many requests may run at a time (default 10000)")
	fs.Int64Var(&f.own.MaxHeldBodies, "max-held-bodies", 0, "how many `bytes` the bodies of requests with a key may have at a time (default 268435456)")
	scopes := []string{"config", "scope-header", "scope-unverified-claim", "scope-certificate", "unscoped"}
	cmd.MarkFlagsOneRequired("config", "upstream")
	cmd.MarkFlagsOneRequired(scopes...)
	cmd.MarkFlagsMutuallyExclusive(scopes...)
	for _, name := range []string{"upstream", "required", "upstream-aware", "trusted", "body-timeout", "write-timeout", "min-rate", "max-requests", "max-held-bodies"} {
		cmd.MarkFlagsMutuallyExclusive("config", name)
	}
}

const byCertificate = "certificate"

// load returns the configuration of the file or the flags.
func (f *policyFlags) load() (proxy.Config, error) {
	if f.file == "" {
		return f.own, nil
	}
	return proxy.Load(f.file)
}

// warnings returns what other layers have to do for a configuration to be safe.
func warnings(config proxy.Config, verifiesCertificates bool) (texts []string) {
	scoped := func(is func(proxy.Scope) bool) bool {
		return slices.ContainsFunc(config.Policies(), func(p proxy.Policy) bool { return is(p.Scope) })
	}
	if scoped(proxy.Scope.Unverified) {
		texts = append(texts, "the proxy does not verify tokens: a layer in front of it must, or a client can claim the scope of another")
	}
	if !verifiesCertificates && scoped(func(s proxy.Scope) bool { return s.String() == byCertificate }) {
		texts = append(texts, "no client has a verified certificate without --tls-client-ca: requests with a key get 403 where the scope is a certificate")
	}
	if !config.Default.Required && slices.ContainsFunc(config.Routes, func(p proxy.Policy) bool { return p.Required }) {
		texts = append(texts, "a service may take a path in other letters or with a slash at its end, as /PAY or /pay/ for /pay: then the default policy, which requires no key, decides; set required in [default]")
	}
	return texts
}

// proxyJSON is the result of "proxy check" in the output for programs.
type proxyJSON struct {
	Upstream string `json:"upstream"`
	Policies int    `json:"policies"`
}

// proxyCheck is the command "proxy check".
func (c *session) proxyCheck() *cobra.Command {
	return &cobra.Command{
		Use:   "check FILE",
		Short: "Check the file of --config without serving it",
		Args:  cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			config, err := proxy.Load(args[0])
			if err != nil {
				return findings("%w", err)
			}
			log := slog.New(slog.DiscardHandler)
			if _, err := proxy.New(memstore.New(), config, proxy.Options{Engine: reprise.Config{Log: log, MaxRun: maxRun}}); err != nil {
				return findings("%s: %w", args[0], err)
			}
			if c.json {
				c.printJSON(proxyJSON{config.Upstream.String(), 1 + len(config.Routes)})
				return nil
			}
			c.out.Line(ui.Paint(ui.Good, "✓"), " ", args[0], " is valid")
			for i, p := range config.Policies() {
				c.out.Line("  ", describePolicy(i, p))
			}
			for _, text := range warnings(config, true) {
				c.err.Line(ui.Paint(ui.Warn, "!"), " ", text)
			}
			return nil
		},
	}
}

// describePolicy describes policy i in a line. Policy 0 is for all other requests.
func describePolicy(i int, p proxy.Policy) string {
	match := "all other requests"
	if i > 0 {
		match = strings.Join(p.Match, ", ")
	}
	if p.Unkeyed {
		return fmt.Sprintf("%s: %s, unkeyed", p.Name, match)
	}
	key := "key optional"
	if p.Required {
		key = "key required"
	}
	return fmt.Sprintf("%s: %s, %s, %s", p.Name, match, p.Scope, key)
}
