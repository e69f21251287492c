package command

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/spf13/cobra"

	"github.com/reprise-go/reprise/console"

	"github.com/reprise-go/reprise/cmd/reprise/internal/connect"
)

// defaultListen is where the console listens unless told otherwise. Port 0 is any free
// one.
const defaultListen = "127.0.0.1:0"

// console is the command "console".
func (c *session) console() *cobra.Command {
	var (
		listen, auditLog string
		write            bool
	)
	cmd := &cobra.Command{
		Use:   "console",
		Short: "Serve the website for operators on this machine",
		Long: `console serves the pages of the package console on a loopback address, so that you
need not deploy them. It prints the address, whose path has a secret part: without
it nobody sees the pages. They are read-only unless --write is passed. They have no
counters and no policies, which only the processes of the service have.`,
		Args: cobra.NoArgs,
		RunE: c.withStore(func(ctx context.Context, store *connect.Store, _ []string) error {
			address, err := loopback(listen)
			if err != nil {
				return err
			}
			log, file, err := c.openAudit(auditLog)
			if err != nil {
				return err
			}
			defer file.Close()
			return c.serve(ctx, store, address, write, slog.New(log))
		}),
	}
	cmd.Flags().StringVar(&listen, "listen", defaultListen, "the loopback `address` to serve on; port 0 is any free one, and a tunnel to it needs the same port at its other end")
	cmd.Flags().BoolVar(&write, "write", false, "let the pages resolve records")
	cmd.Flags().StringVar(&auditLog, "audit-log", "", "append the audit log to this `file` instead of standard error")
	return cmd
}

// loopback refuses an address that other machines can reach: the pages ask for no login.
func loopback(listen string) (string, error) {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return "", usage("--listen is %q, want an address such as 127.0.0.1:8080", listen)
	}
	if host == "localhost" {
		host = "127.0.0.1"
	}
	address, err := netip.ParseAddr(host)
	if err != nil || !address.IsLoopback() {
		return "", usage("--listen is %q, which is not a loopback address. The pages ask for no login: to offer them to others, mount the package console behind a login of yours", listen)
	}
	return net.JoinHostPort(host, port), nil
}

// hosts returns the Host fields of a browser on this machine, or at the other end of a
// tunnel that has the same port there.
func hosts(address net.Addr) []string {
	_, port, _ := net.SplitHostPort(address.String())
	return []string{address.String(), net.JoinHostPort("localhost", port)}
}

// serve serves the pages until ctx ends.
func (c *session) serve(ctx context.Context, store *connect.Store, address string, write bool, log *slog.Logger) error {
	var listening net.ListenConfig
	l, err := listening.Listen(ctx, "tcp", address)
	if err != nil {
		return unsafe("the pages cannot be served: %w", err)
	}
	may := console.Look | console.Reveal
	if write {
		may |= console.Resolve
	}
	pages, err := console.Handler(
		[]console.Store{{Name: store.Kind.String(), Store: store.Store}},
		func(*http.Request) (string, console.Permission) { return operator(), may },
		console.Config{Title: store.Name, Hosts: hosts(l.Addr()), Log: log},
	)
	if err != nil {
		_ = l.Close()
		return unsafe("the pages cannot be served: %w", err)
	}
	base := "/" + rand.Text() + "/"
	mux := http.NewServeMux()
	mux.Handle(base, http.StripPrefix(base[:len(base)-1], pages))
	server := &http.Server{
		Handler:           mux,
		ReadHeaderTimeout: 5 * time.Second,
		BaseContext:       func(net.Listener) context.Context { return context.WithoutCancel(ctx) },
	}
	done := make(chan error, 1)
	go func() { done <- server.Serve(l) }()
	if c.json {
		c.printJSON(map[string]any{"url": "http://" + l.Addr().String() + base, "write": write})
	} else {
		c.out.Line("serving ", store.Name)
		c.out.Line("at ", fmt.Sprintf("http://%s%s", l.Addr(), base))
		if !write {
			c.out.Line("read-only; --write lets the pages resolve records")
		}
	}
	select {
	case err := <-done:
		return unsafe("the server ended: %w", err)
	case <-ctx.Done():
	}
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if err := server.Shutdown(bounded); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return unsafe("ending the server: %w", err)
	}
	return nil
}
