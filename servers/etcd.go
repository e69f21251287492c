package servers

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// EtcdMember is a member of an [EtcdCluster].
type EtcdMember struct {
	control

	addr string // of its clients
}

// Addr returns the address for clients.
func (m *EtcdMember) Addr() string { return m.addr }

// EtcdCluster is a cluster of etcd whose leader is replaced after about half a second.
type EtcdCluster struct {
	Members []*EtcdMember
	Links   *EtcdLinks // nil without: see StartLinkedEtcd
}

// Addrs returns the addresses of the members.
func (c *EtcdCluster) Addrs() []string {
	all := make([]string, len(c.Members))
	for i, m := range c.Members {
		all[i] = m.addr
	}
	return all
}

// StartEtcd starts a cluster for the test, from a program of etcd 3.4 or newer. In a
// setting, {client} is the member's address for clients.
func StartEtcd(tb testing.TB, program string, members int, settings ...string) *EtcdCluster {
	tb.Helper()
	return startEtcd(tb, program, members, nil, settings)
}

// StartLinkedEtcd is StartEtcd for a cluster whose links between members a test can cut.
func StartLinkedEtcd(tb testing.TB, program string, members int, settings ...string) *EtcdCluster {
	tb.Helper()
	return startEtcd(tb, program, members, startEtcdLinks(tb, members), settings)
}

func startEtcd(tb testing.TB, program string, members int, links *EtcdLinks, settings []string) *EtcdCluster {
	tb.Helper()
	type place struct{ name, client, peer, known string } // known is the address of a peer to the others
	places := make([]place, members)
	initial := make([]string, members)
	for i := range places {
		client, peer := FreeAddr(tb), FreeAddr(tb)
		places[i] = place{fmt.Sprintf("m%d", i), client, peer, peer}
		if links != nil {
			links.to(i, peer)
			places[i].known = peerName(i)
		}
		initial[i] = places[i].name + "=http://" + places[i].known
	}
	cluster := &EtcdCluster{Links: links}
	for i, p := range places {
		dir, err := scratch(tb, nil)
		must(tb, err)
		args := []string{
			"--name", p.name, "--data-dir", dir + "/data", "--log-level", "error",
			"--listen-client-urls", "http://" + p.client, "--advertise-client-urls", "http://" + p.client,
			"--listen-peer-urls", "http://" + p.peer, "--initial-advertise-peer-urls", "http://" + p.known,
			"--initial-cluster", strings.Join(initial, ","),
		}
		for _, setting := range settings {
			args = append(args, strings.ReplaceAll(setting, "{client}", p.client))
		}
		m := &EtcdMember{control{process: &process{path: program, args: args, dir: dir, env: links.env(i)}}, p.client}
		m.ready = m.answers
		tb.Cleanup(func() { _ = m.process.stop() })
		must(tb, m.process.start())
		cluster.Members = append(cluster.Members, m)
	}
	for _, m := range cluster.Members {
		must(tb, m.await())
	}
	return cluster
}

// answers returns nil when the member serves, which needs a majority of the cluster.
func (m *EtcdMember) answers(ctx context.Context) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+m.addr+"/health", http.NoBody)
	if err != nil {
		return err
	}
	got, err := new(http.Client).Do(r)
	if err != nil {
		return err
	}
	_ = got.Body.Close()
	if got.StatusCode != http.StatusOK {
		return fmt.Errorf("member %s: %s", m.addr, got.Status)
	}
	return nil
}
