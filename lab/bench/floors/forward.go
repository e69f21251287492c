package floors

import (
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"time"
)

// newForward returns a reverse proxy of net/http with the settings of package proxy.
func newForward(upstream string) *httputil.ReverseProxy {
	target := &url.URL{Scheme: "http", Host: upstream}
	return &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host = target.Scheme, target.Host
			r.Out.Host = r.In.Host
			r.SetXForwarded()
		},
		Transport: &http.Transport{
			DialContext:           (&net.Dialer{Timeout: 5 * time.Second}).DialContext,
			ResponseHeaderTimeout: time.Minute, ExpectContinueTimeout: time.Second,
			MaxIdleConns: 256, MaxIdleConnsPerHost: 256, IdleConnTimeout: 4 * time.Second,
			MaxResponseHeaderBytes: 1 << 20, DisableCompression: true,
		},
	}
}
