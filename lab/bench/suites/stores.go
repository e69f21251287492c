package suites

import (
	"encoding/json"
	"maps"
	"net/http"
	"strings"

	"github.com/reprise-go/reprise/lab/serve/mysqlserver"
	"github.com/reprise-go/reprise/servers"
)

// startMariaDB starts a server that does not wait for its disk, as PostgreSQL's does not:
// see postgresSettings.
func (b *bench) startMariaDB(p *place) {
	server := servers.StartMariaDB(p.host, "innodb-buffer-pool-size=256M", "innodb-log-file-size=256M")
	p.words["mysql"] = mysqlserver.New(p.host, server)
	p.usage["mysql"] = func(h *host) servers.Usage { return server.Usage(h) }
	version := mysqlserver.Pool(p.host, p.words["mysql"], 1).QueryRowContext(p.host.ctx, "SELECT SUBSTRING_INDEX(VERSION(), '-', 1)")
	if err := version.Scan(&p.suite.Machine.MariaDB); err != nil {
		p.host.Fatal(err)
	}
}

// startEtcd starts three members, of the server that lab/etcd requires. Each waits for
// its disk: a majority that has an entry there is the promise of etcd.
func (b *bench) startEtcd(p *place) error {
	program, err := b.programs.command(p.host.ctx, Variant{Program: "lab/etcd/etcd"})
	if err != nil {
		p.host.Skipf("etcd: %v", err)
	}
	cluster := servers.StartEtcd(p.host, program[0], 3)
	p.words["etcd"] = strings.Join(cluster.Addrs(), ",")
	p.usage["etcd"] = func(h *host) servers.Usage {
		all := servers.Usage{}
		for _, m := range cluster.Members {
			maps.Copy(all, m.Usage(h))
		}
		return all
	}
	asked, err := http.NewRequestWithContext(p.host.ctx, http.MethodGet, "http://"+cluster.Addrs()[0]+"/version", http.NoBody)
	if err != nil {
		return err
	}
	r, err := new(http.Client).Do(asked)
	if err != nil {
		return err
	}
	defer r.Body.Close()
	var version struct{ EtcdServer string }
	err = json.NewDecoder(r.Body).Decode(&version)
	p.suite.Machine.Etcd = version.EtcdServer
	return err
}
