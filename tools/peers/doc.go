// Package peers has the servers of other libraries that lab/bench measures Reprise
// beside (target P6). Each is a program that answers POST /t/orders and prints where it
// listens. They stand outside the workspace, so that a module that the proxy refuses
// takes only its own program down:
//
//   - fiberv2: Fiber v2 with its own idempotency middleware, and with Reprise
//   - tools/fiberv3: Fiber v3 with its own; a module of its own, because it wants another
//     fasthttp
//   - node: Express with two packages of npm
//
// make bench/peers runs them.
package peers
