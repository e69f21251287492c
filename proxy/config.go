package proxy

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2"
)

// Config is the configuration of a [Handler], as a file has it. [Parse] describes the
// notation.
type Config struct {
	// Upstream is the service: http://host:port, https://host:port, or h2c://host:port for
	// HTTP/2 without TLS. It has no path.
	Upstream Upstream `toml:"upstream"`

	// Scope is the scope of policies that have none. There is no default: to share one key
	// space among all clients, set it to "unscoped".
	Scope Scope `toml:"scope"`

	// Trusted lists the addresses of peers, such as load balancers, whose X-Forwarded-For,
	// X-Forwarded-Host and X-Forwarded-Proto the upstream gets. Those of other peers are
	// replaced.
	Trusted []Prefix `toml:"trusted_addresses"`

	// ConnectTimeout bounds a connection to the upstream and its TLS handshake. The default
	// is 5 s. A request that gets no connection was not sent, and its retry runs.
	ConnectTimeout Duration `toml:"connect_timeout"`

	// ResponseTimeout bounds the time from the end of a request to the header of its
	// response, and each write to the upstream. The default is 60 s. The outcome of a
	// request with a key that exceeds it is unknown.
	ResponseTimeout Duration `toml:"response_timeout"`

	// BodyTimeout bounds how long a client may take to send the body of a request with a
	// key, which is read before the request is forwarded, apart from the time that its
	// bytes may take at MinRate. The default is 10 s.
	BodyTimeout Duration `toml:"body_timeout"`

	// WriteTimeout bounds each write of a response to a client that does not read, apart
	// from the time that its bytes may take at MinRate. The default is 30 s.
	WriteTimeout Duration `toml:"write_timeout"`

	// MinRate is the least rate, in bytes per second, of those bodies and writes. The
	// default is 16,384.
	MinRate int `toml:"min_rate"`

	// MaxHeldBodies bounds the bytes of the bodies of requests with a key, which are in
	// memory from when they arrive until their responses end; a request whose next byte has
	// no room gets 503. The memory that they take may be twice as much. The default is
	// 256 MiB.
	MaxHeldBodies int64 `toml:"max_held_bodies"`

	// MaxRequests bounds the concurrent requests; any further one gets 503. The default is
	// 10,000.
	MaxRequests int `toml:"max_requests"`

	// Seal encrypts the responses of all policies in the store. The default is that they
	// are in the clear.
	Seal Seal `toml:"seal"`

	// Default is the policy of requests that no route matches. It has no Match.
	Default Policy `toml:"default"`

	// Routes are the policies of the requests that match one of their patterns.
	Routes []Policy `toml:"route"`
}

// The defaults of a Config.
const (
	defaultConnectTimeout  = Duration(5 * time.Second)
	defaultResponseTimeout = Duration(time.Minute)
	defaultBodyTimeout     = Duration(10 * time.Second)
	defaultWriteTimeout    = Duration(30 * time.Second)
	defaultMinRate         = 16 << 10
	defaultMaxHeldBodies   = 256 << 20
	defaultMaxRequests     = 10_000
)

// Load reads the file of a configuration, see [Parse].
func Load(name string) (Config, error) {
	text, err := os.ReadFile(name) //nolint:gosec // the operator's own file
	if err != nil {
		return Config{}, fmt.Errorf("proxy: %w", err)
	}
	c, err := Parse(text)
	if err != nil {
		return Config{}, fmt.Errorf("%s:%w", name, err)
	}
	return c, nil
}

// Parse reads a configuration in TOML:
//
//	upstream = "http://127.0.0.1:3000"
//	scope = "header:Authorization"
//
//	[[route]]
//	name = "payments"
//	match = ["POST /v1/payments", "POST /v1/payments/{id}/capture"]
//	required = true
//	retention = "72h"
//
// An error begins with the number of its line. An unknown field is an error.
func Parse(text []byte) (Config, error) {
	var c Config
	d := toml.NewDecoder(bytes.NewReader(text)).DisallowUnknownFields()
	if err := d.Decode(&c); err != nil {
		return Config{}, located(err)
	}
	return c, nil
}

// located returns an error of the decoder with its lines.
func located(err error) error {
	if missing := new(toml.StrictMissingError); errors.As(err, &missing) {
		var lines []error
		for i := range missing.Errors {
			e := &missing.Errors[i]
			row, _ := e.Position()
			lines = append(lines, fmt.Errorf("%d: unknown field %s", row, strings.Join(e.Key(), ".")))
		}
		return errors.Join(lines...)
	}
	if one := new(toml.DecodeError); errors.As(err, &one) {
		row, _ := one.Position()
		return fmt.Errorf("%d: %s", row, strings.TrimPrefix(one.Error(), "toml: "))
	}
	return fmt.Errorf("1: %w", err)
}

// complete returns c with its defaults, or the error that names its invalid field.
func (c Config) complete() (Config, error) {
	if c.Upstream.url == nil {
		return c, errors.New("proxy: upstream is missing, want a URL such as http://127.0.0.1:3000")
	}
	if len(c.Default.Match) > 0 {
		return c, errors.New("proxy: default.match is set; remove it, since the default policy is for the requests that no route matches")
	}
	for _, d := range []struct {
		field     string
		value     *Duration
		otherwise Duration
	}{
		{"connect_timeout", &c.ConnectTimeout, defaultConnectTimeout},
		{"response_timeout", &c.ResponseTimeout, defaultResponseTimeout},
		{"body_timeout", &c.BodyTimeout, defaultBodyTimeout},
		{"write_timeout", &c.WriteTimeout, defaultWriteTimeout},
	} {
		if *d.value < 0 {
			return c, fmt.Errorf("proxy: %s is negative: %s", d.field, time.Duration(*d.value))
		}
		if *d.value == 0 {
			*d.value = d.otherwise
		}
	}
	for name, value := range map[string]int64{"max_requests": int64(c.MaxRequests), "min_rate": int64(c.MinRate), "max_held_bodies": c.MaxHeldBodies} {
		if value < 0 {
			return c, fmt.Errorf("proxy: %s is %d, want at least 1", name, value)
		}
	}
	c.MaxRequests = cmp.Or(c.MaxRequests, defaultMaxRequests)
	c.MinRate = cmp.Or(c.MinRate, defaultMinRate)
	c.MaxHeldBodies = cmp.Or(c.MaxHeldBodies, defaultMaxHeldBodies)
	return c, nil
}

// Upstream is the address of a service, see [Config].
type Upstream struct{ url *url.URL }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (u *Upstream) UnmarshalText(text []byte) error {
	parsed, err := url.Parse(string(text))
	switch {
	case err != nil:
		return errors.New("the upstream is not a URL, want one such as http://127.0.0.1:3000")
	case parsed.Scheme != "http" && parsed.Scheme != "https" && parsed.Scheme != "h2c":
		return errors.New("the URL of the upstream must begin with http://, https:// or h2c://")
	case parsed.Host == "":
		return errors.New("the URL of the upstream has no host")
	case parsed.User != nil || parsed.RawQuery != "" || parsed.Fragment != "" || strings.Trim(parsed.Path, "/") != "":
		return errors.New("the URL of the upstream has more than a scheme, a host and a port; the proxy does not rewrite requests")
	}
	parsed.Path = ""
	u.url = parsed
	return nil
}

// String returns the URL, or an empty string for the zero value.
func (u Upstream) String() string {
	if u.url == nil {
		return ""
	}
	return u.url.String()
}

// Duration is a [time.Duration] in the notation of [time.ParseDuration].
type Duration time.Duration

// UnmarshalText implements [encoding.TextUnmarshaler].
func (d *Duration) UnmarshalText(text []byte) error {
	parsed, err := time.ParseDuration(string(text))
	if err != nil {
		return fmt.Errorf("%q is not a duration, want one such as 30s or 24h", text)
	}
	*d = Duration(parsed)
	return nil
}

// Prefix is a range of addresses such as 10.0.0.0/8, or one address.
type Prefix netip.Prefix

// UnmarshalText implements [encoding.TextUnmarshaler].
func (p *Prefix) UnmarshalText(text []byte) error {
	if address, err := netip.ParseAddr(string(text)); err == nil {
		*p = Prefix(netip.PrefixFrom(address, address.BitLen()))
		return nil
	}
	prefix, err := netip.ParsePrefix(string(text))
	if err != nil {
		return fmt.Errorf("%q is neither an address nor a range such as 10.0.0.0/8", text)
	}
	*p = Prefix(prefix)
	return nil
}
