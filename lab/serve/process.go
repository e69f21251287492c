package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reprise-go/reprise/conformance/adaptertest/testapp"
)

const (
	startTimeout = 30 * time.Second        // to reach the store and create its tables
	drainTimeout = 4500 * time.Millisecond // the rest of the five seconds is for the exit
)

// Run serves the application with the server that build makes, over the store that o asks
// for, as a process does: it writes one line "listening on ADDR" to stdout, and JSON
// lines to stderr. When ctx ends it drains: it takes no new requests and waits up to five
// seconds for those that run. An error says that it could not start, that the server
// failed, or which requests had not ended by then.
func Run(ctx context.Context, build func(*testapp.App) testapp.Server, o Options, stdout, stderr io.Writer) error {
	log := slog.New(slog.NewJSONHandler(stderr, nil))
	slog.SetDefault(log)
	redis.SetLogger(redisLog{log})

	backend, err := open(ctx, o)
	if err != nil {
		return err
	}
	if err := addPoints(backend, stdout); err != nil {
		return err
	}
	a, err := o.app(backend, log)
	if err != nil {
		return err
	}
	ln, err := new(net.ListenConfig).Listen(ctx, "tcp", o.Addr)
	if err != nil {
		return err
	}
	server := build(a)
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(pointsOn(ln)) }()
	purging, stopPurge := context.WithCancel(context.WithoutCancel(ctx))
	purged := make(chan struct{})
	go func() {
		defer close(purged)
		backend.purge(purging, o.Purge, log)
	}()
	fmt.Fprintf(stdout, "listening on %s\n", ln.Addr())
	log.Info("listening", slog.String("addr", ln.Addr().String()), slog.String("adapter", o.Adapter), slog.String("store", o.Store))

	select {
	case err = <-ended:
	case <-ctx.Done():
		draining, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTimeout)
		defer cancel()
		err = errors.Join(a.Drain(draining, server), <-ended)
	}
	stopPurge()
	<-purged
	if err != nil {
		log.Error("ended", slog.Any("error", err))
		return err // connections may be in use still, so do not wait for them
	}
	backend.Close()
	log.Info("drained")
	return nil
}

func open(ctx context.Context, o Options) (*Backend, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	return OpenStore(ctx, o.Store, o.Backend)
}

// purgeBatch is how many records are purged at once.
const purgeBatch = 1000

// purge purges every so often until ctx ends, if there is anything to purge with.
func (b *Backend) purge(ctx context.Context, every time.Duration, log *slog.Logger) {
	if b.purger == nil || every == 0 {
		return
	}
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		for {
			n, err := b.purger.Purge(ctx, purgeBatch)
			if n > 0 {
				log.Info("purged", slog.Int("records", n))
			}
			if err != nil {
				log.Error("purge failed", slog.Any("error", err))
			}
			if err != nil || n < purgeBatch {
				break
			}
		}
	}
}

// redisLog sends the messages of the Redis client to the log of the process.
type redisLog struct{ log *slog.Logger }

// Printf implements the logger of go-redis.
func (l redisLog) Printf(ctx context.Context, format string, v ...any) {
	l.log.WarnContext(ctx, "redis: "+fmt.Sprintf(format, v...))
}
