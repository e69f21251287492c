package mysql

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/lab/serve/mysqlserver"
	"github.com/reprise-go/reprise/servers"
	reprisemysql "github.com/reprise-go/reprise/store/mysql"
)

// pair is a primary and its replica. Clients reach the primary through a proxy, as by a
// virtual address; the replica reaches it through another one.
type pair struct {
	primary, replica *servers.MariaDBServer
	front, link      *servers.Proxy
	raw              string // URL of a database on the primary, as root
	service          string // URL of the same through the proxy, of an account that read_only binds
}

// durable are the settings without which a server loses acknowledged commits alone.
var durable = []string{"log-bin=binlog", "sync-binlog=1", "innodb-flush-log-at-trx-commit=1", "log-slave-updates"}

// newPair starts a primary, and a replica that has received everything.
func newPair(t *testing.T) *pair {
	t.Helper()
	p := &pair{
		primary: servers.StartMariaDB(t, append(durable, "server-id=1")...),
		replica: servers.StartMariaDB(t, append(durable, "server-id=2", "read-only")...),
	}
	p.front, p.link = servers.StartProxy(t, p.primary.Addr()), servers.StartProxy(t, p.primary.Addr())
	p.raw = withEffects(t, p.primary)
	p.service = p.front.URL(asService(t, p.raw))
	u, err := url.Parse("tcp://" + p.link.Addr())
	labtest.Must(t, err)
	p.onReplica(t, fmt.Sprintf("CHANGE MASTER TO master_host = '%s', master_port = %s, master_user = 'root', master_use_gtid = slave_pos, "+
		"master_connect_retry = 1, master_heartbeat_period = 1", u.Hostname(), u.Port()))
	p.onReplica(t, "START SLAVE")
	labtest.Eventually(t, "the replica does not follow", func() bool { return p.position(t, p.replica) == p.position(t, p.primary) })
	return p
}

func (p *pair) onReplica(t *testing.T, statement string) {
	t.Helper()
	mysqlserver.Exec(t, p.replica.URL(), statement)
}

// position is the last transaction that a server has committed.
func (p *pair) position(t *testing.T, s *servers.MariaDBServer) (gtid string) {
	t.Helper()
	labtest.Must(t, mysqlserver.Pool(t, s.URL(), 1).QueryRowContext(t.Context(), "SELECT @@gtid_current_pos").Scan(&gtid))
	return gtid
}

// promote makes the replica the primary once it has executed all that it has, and moves
// the clients there.
func (p *pair) promote(t *testing.T) {
	t.Helper()
	p.onReplica(t, "STOP SLAVE IO_THREAD")
	const idle = "SELECT COUNT(*) FROM information_schema.processlist WHERE state LIKE 'Slave has read all relay log%'"
	labtest.Eventually(t, "the replica has executed what it received", func() bool { return count(t, p.replica.URL()+"/mysql", idle) == 1 })
	for _, statement := range []string{"STOP SLAVE", "RESET SLAVE ALL", "SET GLOBAL read_only = 0"} {
		p.onReplica(t, statement)
	}
	p.front.Retarget(p.replica.Addr())
}

// onPromoted returns the URL of the database on the replica.
func (p *pair) onPromoted() string {
	return strings.Replace(p.raw, p.primary.Addr(), p.replica.Addr(), 1)
}

// forever is a timeout after which no server falls back to asynchronous replication.
const forever = 1 << 31

// semiSync makes the primary acknowledge a commit when the replica has it. The primary
// waits for so many milliseconds, and is asynchronous from then on.
func (p *pair) semiSync(t *testing.T, timeout int) {
	t.Helper()
	for _, statement := range []string{"SET GLOBAL rpl_semi_sync_slave_enabled = 1", "STOP SLAVE IO_THREAD", "START SLAVE IO_THREAD"} {
		p.onReplica(t, statement)
	}
	const status = "SELECT variable_value FROM information_schema.global_status WHERE variable_name = 'rpl_semi_sync_master_clients'"
	mysqlserver.Exec(t, p.raw, fmt.Sprintf("SET GLOBAL rpl_semi_sync_master_wait_point = AFTER_SYNC, GLOBAL rpl_semi_sync_master_timeout = %d, "+
		"GLOBAL rpl_semi_sync_master_enabled = 1", timeout))
	labtest.Eventually(t, "not semi-synchronous", func() bool { return count(t, p.raw, status) == 1 })
}

// TestSemiSyncPromotionLosesNothing: the primary dies under load, and its replica takes
// over with every claim and response that was acknowledged.
func TestSemiSyncPromotionLosesNothing(t *testing.T) {
	t.Parallel()
	for name, transactional := range map[string]bool{"leased": false, "transactional": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPair(t)
			p.semiSync(t, forever)
			p.link.Delay(5*time.Millisecond, 5*time.Millisecond)
			l := newLoad(t, transactional, mysqlserver.Pool(t, p.service, 8), mysqlserver.Pool(t, p.service, 8))
			stop := l.Start()
			l.Await()
			p.link.Set(t, servers.Swallow) // and discard the bytes in flight
			p.primary.Kill(t)
			p.promote(t)
			stop()
			l.Judge(mysqlserver.Pool(t, p.onPromoted(), 1))
		})
	}
}

// TestDemotedPrimaryIsNotBelieved: a connection that stays open reads records that have
// changed since on the new primary. No answer comes from there.
func TestDemotedPrimaryIsNotBelieved(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	st, r := mysqlserver.Store(t, p.service), labtest.NewClaim()
	r.AtMostOnce, r.Lease = true, time.Millisecond
	labtest.WantClaim(t, st, r, store.Claimed)
	labtest.Eventually(t, "its lease ends", func() bool { return labtest.WantClaim(t, st, labtest.Rival(r), store.Lapsed).Outcome == store.Lapsed })
	mysqlserver.Exec(t, p.primary.URL(), "SET GLOBAL read_only = 1")
	labtest.Eventually(t, "the replica has it", func() bool { return p.position(t, p.replica) == p.position(t, p.primary) })
	p.promote(t)
	labtest.Must(t, mysqlserver.Store(t, p.onPromoted()).Complete(t.Context(), labtest.Completion(r, "answer")))
	labtest.WantClaim(t, st, labtest.Rival(r), store.Completed)
}

// TestReplicaDoesNotSettleACommit: it may have received the transaction and not executed
// it yet, when the clients already reach it.
func TestReplicaDoesNotSettleACommit(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	var attempts []*labtest.Attempt
	for _, raw := range []string{p.service, p.front.URL(p.raw)} { // read_only does not bind root
		a := begin(t, transactional(t, mysqlserver.Pool(t, raw, 3), reprisemysql.Config{}), labtest.NewClaim())
		a.Effect(t)
		attempts = append(attempts, a)
	}
	p.onReplica(t, "STOP SLAVE SQL_THREAD")
	p.front.Retarget(p.replica.Addr())
	for _, a := range attempts {
		p.front.On(commitText, servers.LoseReply)
		labtest.Want(t, "complete", a.End(t), store.ErrUnknown)
	}
	p.onReplica(t, "START SLAVE SQL_THREAD")
	p.promote(t)
	for _, a := range attempts {
		labtest.WantClaim(t, a, labtest.Rival(a.ClaimRequest), store.Completed)
	}
}

// TestCommitOfADemotedPrimaryIsNotApplied: it refuses the transactions that are open.
func TestCommitOfADemotedPrimaryIsNotApplied(t *testing.T) {
	t.Parallel()
	server := servers.StartMariaDB(t)
	raw := withEffects(t, server)
	db := wrapped(t, asService(t, raw), true, func(conn *net.TCPConn) net.Conn {
		return &beforeCommit{conn, func() { mysqlserver.Exec(t, server.URL(), "SET GLOBAL read_only = 1") }}
	})
	a := begin(t, transactional(t, db, reprisemysql.Config{}), labtest.NewClaim())
	a.Effect(t)
	labtest.Want(t, "complete", a.End(t), store.ErrNotApplied)
	wantEffects(t, raw, 0)
}

// beforeCommit is a connection that calls a function before it sends a COMMIT.
type beforeCommit struct {
	*net.TCPConn

	call func()
}

func (c *beforeCommit) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte(commitText)) {
		c.call()
	}
	return c.TCPConn.Write(p)
}

// asService returns the URL of a database for an account that read_only binds.
func asService(t *testing.T, raw string) string {
	t.Helper()
	mysqlserver.Exec(t, raw, "CREATE USER IF NOT EXISTS service@'127.0.0.1' IDENTIFIED BY 'secret'")
	mysqlserver.Exec(t, raw, "GRANT SELECT, INSERT, UPDATE, DELETE ON *.* TO service@'127.0.0.1'")
	return strings.Replace(raw, "root@", "service:secret@", 1)
}

// TestKilledWaitForAReplica: while no replica answers, a claim waits. One whose session
// is killed meanwhile is unknown; where only its statement is killed, the server
// acknowledges it. Check finds a primary that would not wait for long.
func TestKilledWaitForAReplica(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	st := mysqlserver.Store(t, p.service)
	for timeout, want := range map[int]int{100: 1, forever: 0} {
		p.semiSync(t, timeout)
		if list, err := st.Check(t.Context()); err != nil || findings(list, "semi-sync") != want {
			t.Errorf("a timeout of %d: %v, %v; want %d findings", timeout, list, err, want)
		}
	}
	p.semiSync(t, forever)
	p.link.Set(t, servers.Stall)
	for statement, want := range map[string]error{"KILL CONNECTION ?": store.ErrUnknown, "KILL QUERY ?": nil} {
		done := make(chan error, 1)
		go func() {
			_, err := st.Claim(context.WithoutCancel(t.Context()), labtest.NewClaim())
			done <- err
		}()
		var session int
		labtest.Eventually(t, "a claim waits", func() bool {
			session = count(t, p.raw, "SELECT COALESCE(MAX(id), 0) FROM information_schema.processlist WHERE user = 'service' AND command = 'Query' AND state LIKE '%semi-sync%'")
			return session > 0
		})
		mysqlserver.Exec(t, p.raw, statement, session)
		if err := <-done; !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", statement, err, want)
		}
	}
}
