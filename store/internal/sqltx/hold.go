package sqltx

import (
	"context"
	"database/sql"
	"database/sql/driver"
)

// Held is a connection out of a pool that one caller uses for several calls.
type Held struct {
	Conn driver.Conn

	back  chan error
	ended chan struct{}
}

// Hold takes a connection out of the pool.
//
// database/sql lends its connections for the duration of a call only, so that a goroutine
// stays in such a call until Release.
func Hold(ctx context.Context, db *sql.DB) (*Held, error) {
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	h := &Held{back: make(chan error), ended: make(chan struct{})}
	began := make(chan error, 1)
	go func() {
		defer close(h.ended)
		defer func() { _ = conn.Close() }()
		if err := Raw(conn, func(driverConn any) error {
			var ok bool
			if h.Conn, ok = driverConn.(driver.Conn); !ok {
				return driver.ErrBadConn
			}
			began <- nil
			return <-h.back
		}); err != nil {
			began <- err
		}
	}()
	if err := <-began; err != nil {
		<-h.ended
		return nil, err
	}
	return h, nil
}

// Release gives the connection back to the pool, which closes it if it is broken.
func (h *Held) Release(broken bool) {
	var err error
	if broken {
		err = driver.ErrBadConn
	}
	h.back <- err
	<-h.ended
}

// Raw is Raw of conn. A connection that was closed meanwhile, as the end of the context
// of a transaction closes it, is an error there, or a panic, because grabConn of Go 1.26
// looks at it twice. Here it is always an error.
func Raw(conn *sql.Conn, f func(driverConn any) error) (err error) {
	called := false
	defer func() {
		if !called && recover() != nil {
			err = sql.ErrConnDone
		}
	}()
	return conn.Raw(func(driverConn any) error {
		called = true
		return f(driverConn)
	})
}
