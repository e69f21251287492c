package judge

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/reprise-go/reprise/cmd/reprise/internal/judge/wire"
)

// nowhere returns a URL on which nothing listens.
func nowhere(t *testing.T) *url.URL {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = l.Close()
	return &url.URL{Scheme: "http", Host: l.Addr().String(), Path: "/"}
}

func TestServiceThatStopsInRetriesIsUnreachable(t *testing.T) {
	t.Parallel()
	n := new(atomic.Int64)
	var server *httptest.Server
	server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.UserAgent() != "" {
			_ = server.Listener.Close()
			panic(http.ErrAbortHandler)
		}
		counting(n)(w, r)
	}))
	t.Cleanup(server.Close)
	o := optionsFor(t, server)
	o.Only = []string{"retries"}
	r := judged(t, o)
	if got := r.Results[1]; got.State != NotShown || !strings.HasPrefix(got.Detail, "the service stopped accepting connections") {
		t.Errorf("%+v, then %+v", r.Results[0], got)
	}
}

func TestOtherAddressesAreTriedFirst(t *testing.T) {
	t.Parallel()
	for name, set := range map[string]func(*Options, *url.URL){
		"also":  func(o *Options, u *url.URL) { o.Also = []*url.URL{u} },
		"other": func(o *Options, u *url.URL) { o.Other = u },
	} {
		o, _ := unkeyedService(t)
		closed := nowhere(t)
		set(o, closed)
		var unreachable *wire.DialError
		if _, err := Run(t.Context(), o, quiet); !errors.As(err, &unreachable) || !strings.Contains(err.Error(), closed.String()) {
			t.Errorf("%s: %v", name, err)
		}
		set(o, &url.URL{Scheme: "http", Host: "192.0.2.1"})
		var forbidden *wire.ForbiddenError
		if _, err := Run(t.Context(), o, quiet); !errors.As(err, &forbidden) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// An address that goes away ends its case, and not the run.
func TestOtherAddressMayGoAway(t *testing.T) {
	t.Parallel()
	o, _ := unkeyedService(t)
	o.Also = []*url.URL{{Scheme: "http", Host: "also.test:" + o.URL.Port(), Path: "/"}}
	o.Only = []string{"concurrency/addresses", "retries/lost"}
	looked := false
	o.Client.Guard.Lookup = func(context.Context, string) ([]netip.Addr, error) {
		if looked {
			return nil, errors.New("no such host")
		}
		looked = true
		return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
	}
	r := judged(t, o)
	if first, last := r.Results[0], r.Results[1]; first.State != NotMet || last.State != NotMet {
		t.Errorf("%+v, then %+v", first, last)
	}
}

// The endpoint may have another path at another address.
func TestOtherAddressHasItsOwnPath(t *testing.T) {
	t.Parallel()
	n, strange := new(atomic.Int64), new(atomic.Int64)
	there := served(t, func(w http.ResponseWriter, r *http.Request) {
		if _, port, _ := net.SplitHostPort(r.Host); r.URL.Path != "/there" || port == "" {
			strange.Add(1)
		}
		counting(n)(w, r)
	}).URL
	there.Path = "/there"
	o, _ := unkeyedService(t)
	o.Also, o.Only = []*url.URL{there}, []string{"concurrency/addresses"}
	judged(t, o)
	if n.Load() == 0 || strange.Load() > 0 {
		t.Errorf("%d requests, %d of them to another path", n.Load(), strange.Load())
	}
}
