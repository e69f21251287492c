package suites

import (
	"context"
	"encoding/json"
	"io"
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
	text, err := get(p.host.ctx, "http://"+cluster.Addrs()[0]+"/version")
	if err != nil {
		return err
	}
	var version struct{ EtcdServer string }
	err = json.Unmarshal(text, &version)
	p.suite.Machine.Etcd = version.EtcdServer
	return err
}

// get returns the body of an answer.
func get(ctx context.Context, url string) ([]byte, error) {
	asked, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return nil, err
	}
	r, err := new(http.Client).Do(asked)
	if err != nil {
		return nil, err
	}
	defer r.Body.Close()
	return io.ReadAll(r.Body)
}
