// Package proxy puts the Idempotency-Key header in front of a service in any language: an
// http.Handler that forwards requests to one upstream, runs each key once, and replays
// the response to its retries. "reprise proxy" serves it, and so does the Caddy module.
//
//	config, err := proxy.Load("reprise.toml")
//	handler, err := proxy.New(store, config, proxy.Options{})
//	http.ListenAndServe("127.0.0.1:8080", handler)
//
// If a request certainly did not reach the upstream, its key is released, and the client
// gets 503: its retry runs. A request whose response was lost may have been executed: its
// outcome is unknown, and no retry reaches the upstream until an operator has resolved
// the record. [Forward] gives the same to a reverse proxy of your own.
//
// The handler is not a gateway. It neither authenticates nor limits clients, and it does
// not rewrite requests. A replay does not reach the upstream, so a check of credentials
// that must hold for replays too belongs in front of the proxy.
package proxy
