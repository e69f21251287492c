package command

import (
	"fmt"
	"log/slog"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/proxy"

	"github.com/reprise-go/reprise/cmd/reprise/internal/ui"
)

// policyFlags are a file with policies, or the flags that replace it where one policy is
// enough.
type policyFlags struct {
	file string

	upstream, header, claim string
	certificate, unscoped   bool
	required, aware         bool
	trusted                 []string
}

// register adds the flags to fs.
func (f *policyFlags) register(fs *pflag.FlagSet) {
	fs.StringVar(&f.file, "config", "", "a `file` with a policy per route, in place of --upstream, --upstream-aware, --required, --trusted and the scope")
	fs.StringVar(&f.upstream, "upstream", "", "the `URL` of the service: http://, https:// or h2c:// (HTTP/2 without TLS), a host and a port")
	fs.StringVar(&f.header, "scope-header", "", "a key belongs to the value of the request header `NAME`, hashed")
	fs.StringVar(&f.claim, "scope-unverified-claim", "", "a key belongs to the claim `NAME` of the bearer token, which another layer has verified")
	fs.BoolVar(&f.certificate, "scope-certificate", false, "a key belongs to the names in the client's certificate (--tls-client-ca)")
	fs.BoolVar(&f.unscoped, "unscoped", false, "all clients share one key space")
	fs.BoolVar(&f.required, "required", false, "refuse a POST or PATCH without a key")
	fs.BoolVar(&f.aware, "upstream-aware", false, "pass on what the service marks as its own replay")
	fs.StringSliceVar(&f.trusted, "trusted", nil, "believe X-Forwarded-* of peers with these `addresses`, such as 10.0.0.0/8")
}

// check refuses flags that contradict each other.
func (f *policyFlags) check(fs *pflag.FlagSet) error {
	if f.file != "" {
		for _, name := range []string{"upstream", "scope-header", "scope-unverified-claim", "scope-certificate", "unscoped", "required", "upstream-aware", "trusted"} {
			if fs.Changed(name) {
				return usage("--%s and --config are given; the file says it", name)
			}
		}
		return nil
	}
	scopes := 0
	for _, chosen := range []bool{f.header != "", f.claim != "", f.certificate, f.unscoped} {
		if chosen {
			scopes++
		}
	}
	switch {
	case f.upstream == "":
		return usage("no service: pass --upstream or --config")
	case scopes != 1:
		return usage("%d scopes: pass one of --scope-header, --scope-unverified-claim, --scope-certificate and --unscoped, or --config", scopes)
	}
	if _, err := f.load(); err != nil {
		return usage("%w", err)
	}
	return nil
}

// load returns the configuration of the file or the flags. The latter are put in its
// notation, so that there is one way to read them.
func (f *policyFlags) load() (proxy.Config, error) {
	if f.file != "" {
		return proxy.Load(f.file)
	}
	var c proxy.Config
	scope := "unscoped"
	switch {
	case f.header != "":
		scope = "header:" + f.header
	case f.claim != "":
		scope = "unverified-claim:" + f.claim
	case f.certificate:
		scope = "certificate"
	}
	if err := c.Upstream.UnmarshalText([]byte(f.upstream)); err != nil {
		return c, err
	}
	if err := c.Scope.UnmarshalText([]byte(scope)); err != nil {
		return c, err
	}
	for _, text := range f.trusted {
		var prefix proxy.Prefix
		if err := prefix.UnmarshalText([]byte(text)); err != nil {
			return c, err
		}
		c.Trusted = append(c.Trusted, prefix)
	}
	c.Default.Required, c.Default.UpstreamAware = f.required, f.aware
	return c, nil
}

// warnUnverified says that another layer has to verify tokens.
func (c *session) warnUnverified(config proxy.Config) {
	for _, p := range append([]proxy.Policy{{Scope: config.Scope}, config.Default}, config.Routes...) {
		if p.Scope.Unverified() {
			c.err.Line(ui.Paint(ui.Warn, "!"), " the proxy does not verify tokens: a layer in front of it must, or a client can take the name of another")
			return
		}
	}
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
			for i, p := range append([]proxy.Policy{config.Default}, config.Routes...) {
				c.out.Line("  ", describePolicy(i, p, config.Scope))
			}
			c.warnUnverified(config)
			return nil
		},
	}
}

// describePolicy describes a policy in a line. The first one is that of all other
// requests.
func describePolicy(i int, p proxy.Policy, scope proxy.Scope) string {
	name, match := "default", "all other requests"
	if i > 0 {
		name, match = "route-"+strconv.Itoa(i), strings.Join(p.Match, ", ")
	}
	if p.Name != "" {
		name = p.Name
	}
	if p.Unkeyed {
		return fmt.Sprintf("%s: %s, unkeyed", name, match)
	}
	if p.Scope.String() != "" {
		scope = p.Scope
	}
	key := "key optional"
	if p.Required {
		key = "key required"
	}
	return fmt.Sprintf("%s: %s, %s, %s", name, match, scope, key)
}
