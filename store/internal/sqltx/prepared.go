package sqltx

import (
	"database/sql/driver"
	"reflect"
	"sync"
)

// Prepared keeps the statements that are prepared on the connections of a pool.
//
// A pool closes connections without telling, so Prepared keeps statements for no more
// connections than the pool has open, and forgets the rest without closing their
// statements: those end with their connection. SQLite is different: a connection that is
// closed before its statements keeps its file open. So Prepared keeps none of them, and
// they are closed with their [Session].
type Prepared struct {
	Open func() int           // how many connections the pool has open; nil: keep no statement
	Lost func(err error) bool // whether the server has lost the statement; nil: it never does

	mu     sync.Mutex
	conns  map[driver.Conn]*used
	number uint64 // of the last use
}

// statements are prepared statements, by their texts.
type statements map[string]preparedStmt

// used are the statements of a connection.
type used struct {
	statements

	number uint64 // of their last use
}

// On returns a session on conn. The caller calls its End.
func (p *Prepared) On(conn driver.Conn) *Session { return &Session{conn: conn, prepared: p} }

// of returns the statements of a connection, and whether they are kept.
func (p *Prepared) of(conn driver.Conn) (list statements, kept bool) {
	if p.Open == nil || !reflect.ValueOf(conn).Comparable() {
		return statements{}, false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.number++
	entry := p.conns[conn]
	if entry == nil {
		if p.conns == nil {
			p.conns = map[driver.Conn]*used{}
		}
		entry = &used{statements: statements{}}
		p.forget(p.Open() - 1)
		p.conns[conn] = entry
	}
	entry.number = p.number
	return entry.statements, true
}

// forget forgets the least recently used connections, until at most n are left.
func (p *Prepared) forget(n int) {
	for len(p.conns) > max(n, 0) {
		var (
			oldest driver.Conn
			number = p.number
		)
		for conn, entry := range p.conns {
			if entry.number < number {
				oldest, number = conn, entry.number
			}
		}
		delete(p.conns, oldest)
	}
}

// drop forgets a connection.
func (p *Prepared) drop(conn driver.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, conn)
}

func (p *Prepared) isLost(err error) bool { return p.Lost != nil && p.Lost(err) }
