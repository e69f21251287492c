package connect

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/reprise-go/reprise/core/store"
	repriseetcd "github.com/reprise-go/reprise/store/etcd"
)

var errEtcdURL = errors.New("the URL of etcd is not etcd[s]://[user:password@]host[:port][,host…][?cacert=FILE&cert=FILE&key=FILE]")

// openEtcd returns the store over a client of all endpoints. It contacts them only to log
// in, if the URL has a password: an error of that wraps [store.ErrUnavailable].
func openEtcd(ctx context.Context, s *Settings) (*Store, error) {
	scheme, rest, _ := strings.Cut(s.URL, "://")
	secure := scheme == "etcds"
	authority, query, _ := strings.Cut(rest, "?")
	user, hosts := "", authority
	if at := strings.LastIndexByte(authority, '@'); at >= 0 {
		user, hosts = authority[:at+1], authority[at+1:]
	}
	u, err := url.Parse("etcd://" + user + "host?" + query) // no URL has several hosts
	if err != nil || (u.User == nil) != (user == "") || u.Host != "host" || strings.ContainsAny(hosts, "/#") || scheme != "etcd" && !secure {
		return nil, errEtcdURL
	}
	c := clientv3.Config{DialTimeout: s.Timeout, Logger: zap.NewNop(), Username: u.User.Username(), DialKeepAliveTime: 10 * time.Second, DialKeepAliveTimeout: s.Timeout}
	c.Password, _ = u.User.Password()
	st := &Store{Kind: Etcd, Settings: *s, User: c.Username, Prefix: s.Prefix, Endpoint: hosts, secrets: []string{s.URL, c.Password}}
	for host := range strings.SplitSeq(hosts, ",") {
		if strings.Trim(host, "[]:") == "" {
			return nil, errEtcdURL
		}
		if _, _, err := net.SplitHostPort(host); err != nil {
			host = net.JoinHostPort(strings.Trim(host, "[]"), "2379")
		}
		c.Endpoints = append(c.Endpoints, strings.Replace(scheme, "etcd", "http", 1)+"://"+host)
	}
	st.server = strings.TrimPrefix(c.Endpoints[0], strings.Replace(scheme, "etcd", "http", 1)+"://")
	if c.TLS, err = etcdTLS(secure, u.Query()); err != nil {
		return nil, fmt.Errorf("the URL of etcd: %w", err)
	}
	st.certificates.watch(c.TLS)
	if s.Prefix == "" {
		return nil, errors.New(`no prefix: pass --prefix, or set REPRISE_PREFIX, as in the Config.Prefix of the service whose records these are, such as "orders/"`)
	}
	client, err := newEtcdClient(ctx, c)
	if err != nil {
		return nil, st.redacted(fmt.Errorf("%w: etcd: %w", store.ErrUnavailable, err))
	}
	config := repriseetcd.Config{Prefix: s.Prefix, Logger: s.logger()}
	inner, err := repriseetcd.New(client, config)
	if err != nil {
		_ = client.Close()
		return nil, st.redacted(err)
	}
	st.Name = "etcd " + hosts + ", prefix " + s.Prefix
	st.attach(inner)
	st.Prove = func(ctx context.Context) error { _, err := repriseetcd.Open(ctx, client, config); return err }
	st.Close = func() { _ = client.Close() }
	return st, nil
}

// newEtcdClient returns a client. It stops waiting for the login when ctx ends, but the
// client itself only ends with Close.
func newEtcdClient(ctx context.Context, c clientv3.Config) (*clientv3.Client, error) {
	type made struct {
		client *clientv3.Client
		err    error
	}
	done := make(chan made, 1)
	go func() { // it ends within DialTimeout
		client, err := clientv3.New(c)
		done <- made{client, err}
	}()
	select {
	case m := <-done:
		return m.client, m.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// etcdTLS returns the TLS settings for the files that a URL names, nil for a URL without
// TLS. Without cacert, the authorities of this machine are trusted.
func etcdTLS(secure bool, files url.Values) (*tls.Config, error) {
	for name := range files {
		if !secure || name != "cacert" && name != "cert" && name != "key" {
			return nil, errors.New("a parameter is none of cacert, cert and key of etcds://")
		}
	}
	if !secure {
		return nil, nil //nolint:nilnil // there are none
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if name := files.Get("cacert"); name != "" {
		pem, err := os.ReadFile(name) //nolint:gosec // the operator's own file
		if err != nil {
			return nil, err
		}
		if c.RootCAs = x509.NewCertPool(); !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, errors.New("cacert has no certificate")
		}
	}
	if cert, key := files.Get("cert"), files.Get("key"); cert != "" || key != "" {
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			return nil, err
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}
