package pipeline

import (
	"context"
	"net"
	"sync"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// dial dials a connection with the options of node, by a client that it makes for this
// connection only. That client regards the connection as in use, and does not touch it
// again until release.
func dial(ctx context.Context, node *redis.Client, limits limits) (*conn, error) {
	o := *node.Options()
	d := &dialling{ctx: ctx, dial: o.Dialer}
	defer d.end()
	o.Dialer = d.run
	o.PoolSize, o.MinIdleConns, o.MaxIdleConns, o.MaxActiveConns = 1, 0, 0, 0
	o.MaxRetries, o.DialerRetries = -1, 1
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	client := redis.NewClient(&o)
	sticky := client.Conn()
	release := func() { _, _ = sticky.Close(), client.Close() }
	// Also give up when PING is refused: if a password is wrong, go-redis leaves the
	// connection open, and it would belong to the server's default user.
	if err := sticky.Ping(ctx).Err(); err != nil {
		release()
		return nil, err
	}
	c, err := newConn(d.end(), limits, release)
	if err != nil {
		release()
	}
	return c, err
}

// dialling is the dialer of the client that dial makes. That client dials in another
// goroutine and another context, and may continue after its caller has returned. So the
// dialer uses the context of the pipeline, and ends with it.
type dialling struct {
	ctx  context.Context
	dial func(ctx context.Context, network, addr string) (net.Conn, error)

	mu   sync.Mutex // held while it dials
	over bool
	conn net.Conn
}

func (d *dialling) run(_ context.Context, network, addr string) (net.Conn, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.over {
		return nil, errRetired
	}
	conn, err := d.dial(d.ctx, network, addr) //nolint:contextcheck // see above
	d.conn = conn
	return conn, err
}

// end waits for the dial, and returns the last connection.
func (d *dialling) end() net.Conn {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.over = true
	return d.conn
}
