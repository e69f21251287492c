// Package testapp is the programmable application that the suite for adapters talks to,
// for any framework to serve natively.
//
// An application serves:
//
//   - /t/{op}, any method, behind the middleware: [App.Run] runs the
//     [adaptertest.Program] of the request. The op is the rest of the path, escaped as it
//     was sent, slashes included. The scope is the tenant header ([TenantOf]).
//   - /u/…: behind the same middleware, with no route below it.
//   - GET /executions/{op}: how many times the op ran in this process, and how many of
//     these runs have not ended ([App.Report]).
//   - GET /healthz: 200.
//
// # How to serve it with a framework
//
// Write a [Call] in the framework's own terms, and a function that builds a [Server] of
// an [App]: [NetHTTPCall] and [NetHTTP] are those of net/http. [OverMemory] makes
// fixtures of it, and [InTest] the Serve of an [adaptertest.Fixture] over another store.
package testapp
