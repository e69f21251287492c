package command

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/proxy"

	"github.com/reprise-go/reprise/cmd/reprise/internal/connect"
	"github.com/reprise-go/reprise/cmd/reprise/internal/front"
)

// proxyFlags are the flags of the command "proxy".
type proxyFlags struct {
	policyFlags

	accessLog string
	front     front.Config
	drain     time.Duration
}

// maxRun bounds a request that the upstream has begun to answer.
const maxRun = time.Hour

const (
	defaultConnections = 10_000
	defaultPerPeer     = 1_000
	defaultDrain       = 65 * time.Second // a response may take 60 s
)

// proxy is the command "proxy".
func (c *session) proxy() *cobra.Command {
	f := &proxyFlags{}
	cmd := &cobra.Command{
		Use:   "proxy",
		Short: "Put the Idempotency-Key header in front of a service in any language",
		Long: `proxy forwards requests to a service, runs each key once, and replays the
response to its retries. If a request did not reach the service, its retry runs.
If its response was lost, the service may have executed it: no retry reaches the
service until an operator has resolved the record. With --store memory the records
end with the proxy.

At SIGHUP proxy reads the configuration and the TLS files again, and reopens the
access log. Running requests go on, and an invalid file changes nothing. At SIGTERM
or an interrupt proxy accepts no new requests, and ends when the running ones have
ended.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch files := f.front.Files; {
			case (files.Cert == "") != (files.Key == ""), files.Cert == "" && files.ClientCA != "":
				return usage("TLS needs --tls-cert and --tls-key")
			case f.own.Scope.String() == byCertificate && files.ClientCA == "":
				return usage("--scope-certificate needs --tls-client-ca")
			case f.front.MaxConnections < 1:
				return usage("--max-connections is %d, want at least one", f.front.MaxConnections)
			case f.front.MaxPerPeer < 1:
				return usage("--max-connections-per-peer is %d, want at least one", f.front.MaxPerPeer)
			case f.drain < 0:
				return usage("--drain is %v, want 0 or more", f.drain)
			}
			c.settings.Logger = slog.New(slog.NewJSONHandler(c.logWriter(), nil))
			serve := func(ctx context.Context, st *connect.Store, _ []string) error { return c.serveProxy(ctx, f, st) }
			if err := c.settings.Complete(cmd.Flags(), c.streams.Getenv); err != nil {
				return usage("%w", err)
			}
			if c.settings.URL == "memory" {
				return serve(cmd.Context(), nil, args)
			}
			kind, _ := connect.KindOf(c.settings.URL)
			c.settings.ServicePool = kind == connect.Postgres
			return c.withStore(serve)(cmd, args)
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&f.front.Listen, "listen", defaultListen, "the `address` for clients; port 0 is any free one")
	f.register(cmd)
	fs.StringVar(&f.front.Files.Cert, "tls-cert", "", "serve TLS with the certificates in this `file` (PEM)")
	fs.StringVar(&f.front.Files.Key, "tls-key", "", "the `file` with the key of --tls-cert (PEM)")
	fs.StringVar(&f.front.Files.ClientCA, "tls-client-ca", "", "verify the certificates of clients against those in this `file` (PEM)")
	fs.StringVar(&f.front.Admin, "admin", "", "serve /healthz, /readyz and /metrics at this `address`, without a login")
	fs.StringVar(&f.accessLog, "access-log", "", "append a line of JSON for each request to this `file`; - is standard error")
	fs.IntVar(&f.front.MaxConnections, "max-connections", defaultConnections, "how many connections clients may have in all")
	fs.IntVar(&f.front.MaxPerPeer, "max-connections-per-peer", defaultPerPeer, "how many of them one address may have that is not trusted, or one /64 of IPv6")
	fs.DurationVar(&f.drain, "drain", defaultDrain, "how long requests may run after the signal to end")
	cmd.AddCommand(c.proxyCheck())
	return cmd
}

// serveProxy serves until ctx ends. The records are in memory if st is nil.
func (c *session) serveProxy(ctx context.Context, f *proxyFlags, st *connect.Store) error {
	config, err := f.load()
	if err != nil {
		return findings("%w", err)
	}
	log := c.settings.Logger
	records, name, ready, err := c.records(ctx, st)
	if err != nil {
		return err
	}
	access := &accessLog{name: f.accessLog, out: c.logWriter()}
	if err := access.reopen(); err != nil {
		return usage("%w", err)
	}
	defer access.close()
	m, err := newMeters()
	if err != nil {
		return unsafe("the metrics: %w", err)
	}
	handler, err := proxy.New(m.telemetry.Store(records), config, proxy.Options{ //nolint:contextcheck // its requests have their own
		Engine: reprise.Config{Log: log, MaxRun: maxRun, Observer: m.telemetry}, AccessLog: access.log(),
	})
	if err != nil {
		return findings("%w", err)
	}
	unwatch, err := m.telemetry.Watch("proxy", handler.Engine())
	if err != nil {
		return unsafe("the metrics: %w", err)
	}
	defer func() { _ = unwatch() }()
	unwatchStore, err := m.telemetry.WatchStore("proxy", records) //nolint:contextcheck // it ends by unwatchStore
	if err != nil {
		return unsafe("the metrics: %w", err)
	}
	defer func() { _ = unwatchStore() }()
	f.front.Ready = func(ctx context.Context) error {
		if err := handler.Full(); err != nil {
			return err
		}
		return ready(ctx)
	}
	f.front.Exempt, f.front.Metrics, f.front.Log = handler.Trusts, m.handler(), log
	server, err := front.Open(ctx, f.front, m.around(handler))
	if err != nil {
		return unsafe("the proxy cannot listen: %w", err)
	}
	m.watch(handler, server)
	f.warn(log, config)
	defer f.reloading(log, handler, server, access)() //nolint:contextcheck // the same
	c.announce(server, config, name)
	switch err := server.Run(ctx, f.drain, handler.Close); {
	case errors.Is(err, front.ErrDrain):
		return unsafe("%w after --drain %s; their records lapse, and reprise stuck shows those that need a person", err, f.drain)
	case err != nil:
		return unsafe("%w", err)
	}
	return nil
}

// records returns the store of the proxy, which has executed each operation once by then,
// and a function that checks whether it answers.
func (c *session) records(ctx context.Context, st *connect.Store) (records store.Store, name string, ready func(context.Context) error, err error) {
	if st == nil {
		return memstore.New(), "memory, which ends with this process", func(context.Context) error { return nil }, nil
	}
	bounded, cancel := st.Bounded(ctx)
	defer cancel()
	if err := st.Prove(bounded); err != nil {
		return nil, "", nil, storeFailed(ctx, "opening the store", err)
	}
	ready = func(ctx context.Context) error {
		_, err := st.Look.Inspect(ctx, store.ID{})
		if errors.Is(err, store.ErrNotFound) {
			return nil
		}
		return err
	}
	return st.Store, st.Name, ready, nil
}

// logWriter writes the log to standard error, without passwords.
func (c *session) logWriter() io.Writer {
	return &auditWriter{out: c.err.Raw(), redact: func(text string) string {
		if c.store == nil { // it is being opened, and its errors quote no URL
			return text
		}
		return c.store.Redact(text)
	}}
}

// announce prints where the proxy serves.
func (c *session) announce(server *front.Server, config proxy.Config, store string) {
	if c.json {
		c.printJSON(map[string]any{"url": server.URL(), "admin_url": server.AdminURL(), "upstream": config.Upstream.String(), "store": store})
		return
	}
	c.out.Line("forwarding to ", config.Upstream.String())
	c.out.Line("records in ", store)
	c.out.Line("at ", server.URL())
	if url := server.AdminURL(); url != "" {
		c.out.Line("state at ", url)
	}
}

func (f *proxyFlags) warn(log *slog.Logger, config proxy.Config) {
	for _, text := range warnings(config, f.front.Files.ClientCA != "") {
		log.Warn(text)
	}
}

// reloading reads the files again at each SIGHUP until stop is called.
func (f *proxyFlags) reloading(log *slog.Logger, handler *proxy.Handler, server *front.Server, access *accessLog) (stop func()) {
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range hangups {
			config, err := f.load()
			if err == nil {
				err = server.Reload(func() error { return handler.Reload(config) })
			}
			if err == nil {
				log.Info("reloaded")
				f.warn(log, config)
			}
			if err = errors.Join(err, access.reopen()); err != nil {
				log.Error("not reloaded", slog.Any("error", err))
			}
		}
	}()
	return func() {
		signal.Stop(hangups)
		close(hangups)
		<-done
	}
}
