package mysql

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/reprise-go/reprise/core/store"
	"github.com/reprise-go/reprise/lab/internal/labtest"
	"github.com/reprise-go/reprise/lab/serve/mysqlserver"
	"github.com/reprise-go/reprise/servers"
	reprisemysql "github.com/reprise-go/reprise/store/mysql"
)

// provider is Galera where Debian's package galera-4 has it.
const provider = "/usr/lib/galera/libgalera_smm.so"

// startGalera starts a cluster of three nodes.
func startGalera(t *testing.T) (nodes []*servers.MariaDBServer) {
	t.Helper()
	if _, err := os.Stat(provider); err != nil {
		if strings.Contains(os.Getenv("REPRISE_TEST_REQUIRE"), "mariadb") {
			t.Fatal("REPRISE_TEST_REQUIRE names mariadb, and Debian's package galera-4, which comes with it, is missing")
		}
		t.Skip("no Galera: install the package galera-4")
	}
	var members []string
	for n := range 3 {
		group, state, snapshot := servers.FreeAddr(t), servers.FreeAddr(t), servers.FreeAddr(t)
		nodes = append(nodes, servers.StartMariaDB(t, "wsrep-on=ON", "wsrep-provider="+provider, "wsrep-cluster-name=lab",
			"wsrep-cluster-address=gcomm://"+strings.Join(members, ","), fmt.Sprintf("wsrep-node-name=node-%d", n), "wsrep-node-address="+group,
			"wsrep-provider-options=gmcast.listen_addr=tcp://"+group+";ist.recv_addr="+state+";gcache.size=16M",
			"wsrep-sst-method=rsync", "wsrep-sst-receive-address="+snapshot, "binlog-format=ROW", "innodb-autoinc-lock-mode=2"))
		members = append(members, group)
	}
	return nodes
}

// TestGalera: with one node that all clients write to, no record is lost when it dies and
// they move to another one. Check reports a node. Of an attempt that outlived its lease
// and of its successor at another node, one is undone.
func TestGalera(t *testing.T) {
	t.Parallel()
	labtest.Breadth(t, "tests on three nodes of Galera")
	nodes := startGalera(t)
	on := func(raw string, n int) string { return strings.Replace(raw, nodes[0].Addr(), nodes[n].Addr(), 1) }
	databases := []string{withEffects(t, nodes[0]), withEffects(t, nodes[0])}

	st := transactional(t, mysqlserver.Pool(t, databases[1], 0), reprisemysql.Config{})
	list, err := st.Check(t.Context())
	if err != nil || findings(list, "galera") != 1 {
		t.Errorf("%v, %v; want the finding galera", list, err)
	}
	r := labtest.NewClaim()
	r.Lease = time.Millisecond
	a := begin(t, st, r)
	a.Effect(t)
	other, next := transactional(t, mysqlserver.Pool(t, on(databases[1], 1), 0), reprisemysql.Config{}), labtest.Rival(r)
	labtest.Eventually(t, "it is taken over", func() bool {
		got, err := other.Claim(t.Context(), next)
		return err == nil && got.Outcome == store.Claimed
	})
	b := begin(t, other, next) // again
	b.Effect(t)
	if second, first := b.End(t), a.End(t); second != nil || !labtest.IsOneOf(first, []error{store.ErrLeaseLost, store.ErrNotApplied}) {
		t.Errorf("the stale one: %v, its successor: %v", first, second)
	}
	wantEffects(t, databases[1], 1)
	mysqlserver.Exec(t, databases[1], "DELETE FROM effects")

	front := servers.StartProxy(t, nodes[0].Addr())
	var (
		loads []*labtest.Load
		stops []func()
	)
	for n, raw := range databases {
		l := newLoad(t, n == 1, mysqlserver.Pool(t, front.URL(raw), 8), mysqlserver.Pool(t, front.URL(raw), 8))
		loads, stops = append(loads, l), append(stops, l.Start())
		l.Await()
	}
	nodes[0].Kill(t)
	front.Retarget(nodes[1].Addr())
	for n, l := range loads {
		stops[n]()
		l.Judge(mysqlserver.Pool(t, on(databases[n], 1), 1))
	}
}

// findings counts those with a code.
func findings(list []store.Finding, code string) (n int) {
	for _, f := range list {
		if f.Code == code {
			n++
		}
	}
	return n
}
