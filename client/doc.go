// Package repriseclient is the client's end of the Idempotency-Key header: an
// [http.RoundTripper] that sends the same key with every attempt of a call and retries
// until it has the response, for any service that speaks the header.
//
//	transport, err := repriseclient.NewTransport(http.DefaultTransport, repriseclient.Config{})
//	client := &http.Client{Transport: transport}
//	response, err := client.Do(request) // a POST is keyed, and retried
//
// # Guarantees
//
// All attempts of a call carry one key and the same bytes. The key is that of [WithKey],
// or of a header that the caller set, or a new random one. A response is returned as the
// service sent it; a call that ends without a response ends with an error that says
// whether the operation may have run: [UnknownOutcomeError], [NotSentError],
// [RedirectError], [BodyOmittedError]. Each has the key, with which the call can be
// repeated later.
//
// # Limits
//
// A key makes a retry safe only where the service honours it: put the transport in front
// of services that document the header. Methods other than those of [Config].Methods
// pass through untouched. A generated key dies with the process unless it is stored: see
// [WithKey] for operations that must survive a restart.
package repriseclient
