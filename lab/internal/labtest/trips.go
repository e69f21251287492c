package labtest

import (
	"net"
	"sync/atomic"
)

// Trips counts the round trips of connections: how often each turns from reading to
// writing.
type Trips struct{ n atomic.Int64 }

// Count returns the number of round trips so far.
func (t *Trips) Count() int64 { return t.n.Load() }

// Watch counts those of a connection from now on, which is used through the result.
func (t *Trips) Watch(conn net.Conn) net.Conn { return &tripConn{Conn: conn, trips: t} }

type tripConn struct {
	net.Conn

	trips *Trips
	wrote atomic.Bool
}

func (c *tripConn) Write(b []byte) (int, error) {
	if !c.wrote.Swap(true) {
		c.trips.n.Add(1)
	}
	return c.Conn.Write(b)
}

func (c *tripConn) Read(b []byte) (int, error) {
	c.wrote.Store(false)
	return c.Conn.Read(b)
}
