package mysql

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"math/rand/v2"
	"net"
	"net/url"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/lab/serve/mysqlserver"
	"github.com/reprise-go/reprise/servers"
)

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

// TestConnectionsCutAnywhereDoNothingTwice: under load, within requests and replies.
func TestConnectionsCutAnywhereDoNothingTwice(t *testing.T) {
	t.Parallel()
	for name, transactional := range map[string]bool{"leased": false, "transactional": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := servers.StartMariaDB(t, "max-connect-errors=1000000") // a greeting that is cut is one
			raw := withEffects(t, server)
			proxy := servers.StartProxy(t, server.Addr())
			l := newLoad(t, transactional, mysqlserver.Pool(t, proxy.URL(raw), 8), mysqlserver.Pool(t, proxy.URL(raw)+"?interpolateParams=false", 8))
			stop := l.Start()
			for range labtest.Times(500, 40) {
				time.Sleep(rand.N(200 * time.Millisecond)) //nolint:forbidigo // connections live for a while
				proxy.Throttle(400 + rand.IntN(4000))      // it passes on parts of requests and replies
				time.Sleep(rand.N(100 * time.Millisecond)) //nolint:forbidigo // likewise
				proxy.Reset()
				proxy.Throttle(0)
			}
			proxy.Heal(t)
			stop()
			l.Judge(mysqlserver.Pool(t, raw, 1))
		})
	}
}
