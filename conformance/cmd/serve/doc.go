// Package serve is the server under test: every adapter over every store, with a handler that does what the request asks for.
// The command testserver runs it as a process for black-box tests in any language; [Adapter] serves it inside a test.
//
// It serves:
//
//   - /t/{op}, any method, behind the middleware: runs the [conformance.Program] of the request. The op is what
//     follows /t/ in the path, escaped as it was sent, slashes included. The scope is the tenant header.
//   - /u/…: behind the same middleware, with no route below it.
//   - GET /executions/{op}: how many times the op ran in this process, and how many of these runs have not ended.
//   - GET /healthz: 200.
//
// # How to add an adapter
//
// Write a file like nethttp.go: a [call] in the framework's own terms, and a function that makes a native server of an [app].
// Add its line to the table in adapters.go. What a program does stands in run.go, once for all of them.
//
// # How to add a store
//
// Write an opener like that of redis.go, and add its line to the table in stores.go.
package serve
