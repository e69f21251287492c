package mysql

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"io"
	"math/rand/v2"
	"net"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/lab/serve/mysqlserver"
	"github.com/reprise-go/reprise/servers"
)

// mortal is a connection that is cut after some bytes of both directions: within a
// request, of which the server gets the beginning, or within a reply.
type mortal struct {
	*net.TCPConn

	left atomic.Int64
	cuts *atomic.Int64
}

// longestLife bounds the bytes of a connection: an attempt takes some thousand.
const longestLife = 20_000

func (c *mortal) Read(p []byte) (int, error) {
	n, err := c.TCPConn.Read(p[:c.allowed(len(p))])
	return n, c.spend(n, err)
}

func (c *mortal) Write(p []byte) (int, error) {
	n, err := c.TCPConn.Write(p[:c.allowed(len(p))])
	if err = c.spend(n, err); err == nil && n < len(p) {
		err = io.ErrShortWrite
	}
	return n, err
}

func (c *mortal) allowed(n int) int64 { return min(int64(n), max(0, c.left.Load())) }

// spend cuts the connection after its last byte.
func (c *mortal) spend(n int, err error) error {
	if left := c.left.Add(int64(-n)); left <= 0 && left+int64(n) > 0 {
		c.cuts.Add(1)
		_ = c.SetLinger(0) // at once, with the bytes in flight
		_ = c.TCPConn.Close()
	}
	return err
}

// mortals opens a database over mortal connections.
func mortals(t *testing.T, raw string, cuts *atomic.Int64, interpolate bool) *sql.DB {
	t.Helper()
	return wrapped(t, raw, interpolate, func(conn *net.TCPConn) net.Conn {
		m := &mortal{TCPConn: conn, cuts: cuts}
		m.left.Store(1 + rand.Int64N(longestLife))
		return m
	})
}

// wrapped opens a database over connections that a test has changed.
func wrapped(t *testing.T, raw string, interpolate bool, wrap func(*net.TCPConn) net.Conn) *sql.DB {
	t.Helper()
	db := sql.OpenDB(connector(t, raw, interpolate, wrap))
	t.Cleanup(func() { _ = db.Close() })
	db.SetMaxOpenConns(8)
	db.SetMaxIdleConns(8)
	return db
}

func connector(t *testing.T, raw string, interpolate bool, wrap func(*net.TCPConn) net.Conn) driver.Connector {
	t.Helper()
	u, err := url.Parse(raw)
	labtest.Must(t, err)
	c := mysql.NewConfig()
	c.User, c.Net, c.Addr, c.DBName, c.InterpolateParams = u.User.Username(), "tcp", u.Host, u.Path[1:], interpolate
	c.Passwd, _ = u.User.Password()
	c.Logger = &mysql.NopLogger{}
	c.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		var d net.Dialer
		conn, err := d.DialContext(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return wrap(conn.(*net.TCPConn)), nil //nolint:forcetypeassert // it is
	}
	connector, err := mysql.NewConnector(c)
	labtest.Must(t, err)
	return connector
}

// TestConnectionsCutAnywhereDoNothingTwice: under load, at random bytes.
func TestConnectionsCutAnywhereDoNothingTwice(t *testing.T) {
	t.Parallel()
	enough := int64(2000)
	if testing.Short() {
		enough = 100
	}
	for name, transactional := range map[string]bool{"leased": false, "transactional": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := servers.StartMariaDB(t, "max-connect-errors=1000000") // a greeting that is cut is one
			raw := withEffects(t, server)
			var cuts atomic.Int64
			l := newLoad(t, transactional, mortals(t, raw, &cuts, true), mortals(t, raw, &cuts, false))
			stop := l.Start()
			for cuts.Load() < enough && !t.Failed() {
				time.Sleep(5 * time.Millisecond) //nolint:forbidigo // polls
			}
			stop()
			l.Judge(mysqlserver.Pool(t, raw, 1))
			t.Logf("%d connections cut", cuts.Load())
		})
	}
}
