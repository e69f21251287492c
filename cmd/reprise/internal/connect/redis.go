package connect

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"strings"

	"github.com/redis/go-redis/v9"

	repriseredis "github.com/reprise-go/reprise/store/redis"
)

// redisURL is a URL of Redis in parts. The parsers of the client know only a part of the
// forms, and quote the password in their errors.
type redisURL struct {
	secure, sentinel, cluster bool

	user   *url.Userinfo
	hosts  []string
	path   string
	params url.Values
}

var errRedisURL = errors.New("the URL of Redis is not redis[s][+sentinel|+cluster]://[user:password@]host[:port][,host…][/db][?parameters]")

// parseRedisURL reads a URL. Its errors do not quote it.
func parseRedisURL(text string) (redisURL, error) {
	var u redisURL
	scheme, rest, ok := strings.Cut(text, "://")
	if !ok {
		return u, errRedisURL
	}
	kind, form, _ := strings.Cut(scheme, "+")
	switch kind {
	case "redis":
	case "rediss":
		u.secure = true
	default:
		return u, errRedisURL
	}
	switch form {
	case "":
	case "sentinel":
		u.sentinel = true
	case "cluster":
		u.cluster = true
	default:
		return u, errRedisURL
	}
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	authority := rest[:end]
	if at := strings.LastIndexByte(authority, '@'); at >= 0 {
		head, err := url.Parse("redis://" + authority[:at] + "@host")
		if err != nil {
			return u, errors.New("the user or the password in the URL of Redis has a character that must be percent-encoded")
		}
		u.user, authority = head.User, authority[at+1:]
	}
	tail, err := url.Parse(rest[end:])
	if err != nil {
		return u, errRedisURL
	}
	u.path = tail.Path
	if u.params, err = url.ParseQuery(tail.RawQuery); err != nil {
		return u, errRedisURL
	}
	for host := range strings.SplitSeq(authority, ",") {
		if host == "" {
			return u, errors.New("the URL of Redis has no host, or an empty one")
		}
		u.hosts = append(u.hosts, host)
	}
	return u, nil
}

// withPort returns a host with its port: that of servers, or of sentinels, unless it has
// one.
func (u *redisURL) withPort(host string) string {
	if _, _, err := net.SplitHostPort(host); err == nil {
		return host
	}
	port := "6379"
	if u.sentinel {
		port = "26379"
	}
	return net.JoinHostPort(strings.Trim(host, "[]"), port)
}

// secrets returns the parts of the URL that may not be printed.
func (u *redisURL) secrets() []string {
	var list []string
	if password, ok := u.user.Password(); ok {
		list = append(list, password)
	}
	for _, name := range []string{"password", "sentinel_password"} {
		list = append(list, u.params[name]...)
	}
	return list
}

// plain returns the URL in the form that the client's parsers read: the first host in it,
// the others as parameters.
func (u *redisURL) plain() string {
	plain := url.URL{Scheme: "redis", User: u.user, Host: u.withPort(u.hosts[0]), Path: u.path}
	if u.secure {
		plain.Scheme = "rediss"
	}
	params := url.Values{}
	maps.Copy(params, u.params)
	for _, host := range u.hosts[1:] {
		params.Add("addr", u.withPort(host))
	}
	plain.RawQuery = params.Encode()
	return plain.String()
}

// openRedis returns the store over the client that the settings ask for. It does not
// contact the server.
func openRedis(s *Settings) (*Store, error) {
	u, err := parseRedisURL(s.URL)
	if err != nil {
		return nil, err
	}
	durability, err := s.durability()
	if err != nil {
		return nil, err
	}
	store := &Store{Kind: Redis, Settings: *s, secrets: append(u.secrets(), s.URL)}
	store.User, store.Endpoint, store.server = cmp.Or(u.user.Username(), "default"), strings.Join(u.hosts, ","), u.withPort(u.hosts[0])
	store.Name = "Redis " + store.Endpoint
	var client redis.UniversalClient
	switch {
	case u.cluster:
		store.Name = "Redis cluster " + store.Endpoint
		var o *redis.ClusterOptions
		if o, err = redis.ParseClusterURL(u.plain()); err == nil {
			store.certificates.watch(o.TLSConfig)
			o.ContextTimeoutEnabled = true
			client = redis.NewClusterClient(o)
		}
	case u.sentinel:
		store.Name = "Redis behind the sentinels " + store.Endpoint
		client, err = sentinelClient(&u, &store.certificates)
	case len(u.hosts) > 1:
		err = errors.New("several hosts; say +sentinel or +cluster in the scheme")
	default:
		var o *redis.Options
		if o, err = redis.ParseURL(u.plain()); err == nil {
			store.certificates.watch(o.TLSConfig)
			o.ContextTimeoutEnabled = true
			client = redis.NewClient(o)
		}
	}
	if malformed := new(url.Error); errors.As(err, &malformed) { // its text quotes a part of the password
		return nil, errRedisURL
	}
	if err != nil {
		return nil, store.redacted(fmt.Errorf("the URL of Redis: %w", err))
	}
	if s.Prefix == "" {
		_ = client.Close()
		return nil, errors.New(`no prefix: pass --prefix, or set REPRISE_PREFIX, as in the Config.Prefix of the service whose records these are, such as "orders:"`)
	}
	c := repriseredis.Config{Prefix: s.Prefix, Durability: durability, Logger: s.logger()}
	inner, err := repriseredis.New(client, c)
	if err != nil {
		_ = client.Close()
		return nil, store.redacted(err)
	}
	store.Prefix = s.Prefix
	store.Name += ", prefix " + store.Prefix
	store.attach(inner)
	store.Prove = func(ctx context.Context) error {
		proof, err := repriseredis.Open(ctx, client, c)
		if err != nil {
			return err
		}
		return proof.Close()
	}
	store.Close = func() { _, _ = inner.Close(), client.Close() }
	return store, nil
}

// sentinelClient returns a client of the primary that the sentinels call master. User and
// password in the URL are those of the Redis servers, as in every other URL; those of the
// sentinels are the parameters sentinel_username and sentinel_password.
func sentinelClient(u *redisURL, seen *certificates) (redis.UniversalClient, error) {
	params := u.params
	master := cmp.Or(params.Get("master"), params.Get("master_name"))
	if master == "" {
		return nil, errors.New("the name of the primary is missing; add ?master=NAME")
	}
	plain := *u
	plain.user = url.UserPassword(params.Get("sentinel_username"), params.Get("sentinel_password"))
	for _, name := range []string{"master", "sentinel_username", "sentinel_password"} {
		params.Del(name)
	}
	params.Set("master_name", master)
	o, err := redis.ParseFailoverURL(plain.plain())
	if err != nil {
		return nil, err
	}
	if u.user != nil {
		o.Username = u.user.Username()
		o.Password, _ = u.user.Password()
	}
	if u.secure {
		o.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12} // each server proves the name that it is reached by
	}
	seen.watch(o.TLSConfig)
	o.ContextTimeoutEnabled = true
	return redis.NewFailoverClient(o), nil
}
