package servers

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// EtcdMember is a member of an [EtcdCluster].
type EtcdMember struct {
	control

	addr string // of its clients
}

// Addr returns the address for clients.
func (m *EtcdMember) Addr() string { return m.addr }

// Restart starts the member again after Kill, with its data, and waits until it serves.
func (m *EtcdMember) Restart(tb testing.TB) {
	tb.Helper()
	must(tb, m.own().start())
	must(tb, m.healthy())
}

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

// StartEtcd starts a cluster for the test, from a program of etcd 3.4 or newer.
func StartEtcd(tb testing.TB, program string, members int, settings ...string) *EtcdCluster {
	tb.Helper()
	c, err := startEtcd(tb, program, members, nil, settings)
	must(tb, err)
	return c
}

// StartLinkedEtcd is StartEtcd for a cluster whose links between members a test can cut.
func StartLinkedEtcd(tb testing.TB, program string, members int, settings ...string) *EtcdCluster {
	tb.Helper()
	links, err := startEtcdLinks(tb, members)
	must(tb, err)
	c, err := startEtcd(tb, program, members, links, settings)
	must(tb, err)
	return c
}

func startEtcd(c cleaner, program string, members int, links *EtcdLinks, settings []string) (*EtcdCluster, error) {
	type place struct{ name, client, peer, known string } // known is the address of a peer to the others
	places := make([]place, members)
	initial := make([]string, members)
	for i := range places {
		client, err := freePort()
		if err != nil {
			return nil, err
		}
		peer, err := freePort()
		if err != nil {
			return nil, err
		}
		places[i] = place{fmt.Sprintf("m%d", i), address(client), address(peer), address(peer)}
		if links != nil {
			links.to(i, places[i].peer)
			places[i].known = peerName(i)
		}
		initial[i] = places[i].name + "=http://" + places[i].known
	}
	cluster := &EtcdCluster{Links: links}
	for i, p := range places {
		dir, err := scratch(c, nil)
		if err != nil {
			return nil, err
		}
		args := []string{
			"--name", p.name, "--data-dir", dir + "/data", "--log-level", "error",
			"--listen-client-urls", "http://" + p.client, "--advertise-client-urls", "http://" + p.client,
			"--listen-peer-urls", "http://" + p.peer, "--initial-advertise-peer-urls", "http://" + p.known,
			"--initial-cluster", strings.Join(initial, ","), "--heartbeat-interval", "50", "--election-timeout", "500",
		}
		m := &EtcdMember{control{&process{path: program, args: append(args, settings...), dir: dir, shutdown: sigKill, env: links.env(i)}}, p.client}
		c.Cleanup(func() { _ = m.process.stop() })
		if err := m.process.start(); err != nil {
			return nil, err
		}
		cluster.Members = append(cluster.Members, m)
	}
	for _, m := range cluster.Members {
		if err := m.healthy(); err != nil {
			return nil, err
		}
	}
	return cluster, nil
}

// healthy waits until the member serves, which needs a majority of the cluster.
func (m *EtcdMember) healthy() error {
	return poll(startTimeout, func() error {
		if err := m.process.alive(); err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
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
	})
}
