// Package peers measures Reprise on Fiber beside the idempotency middleware that Fiber v2
// and Fiber v3 bring along (target P6).
//
// Each server is a process of its own, so that the load does not disturb it: fiberv2 in
// this module, and tools/fiberv3 in another, because the two versions of Fiber want two
// versions of fasthttp. The benchmarks run the servers in shuffled rounds, the bare
// framework among them as the floor, and report the medians:
//
//	make bench/peers BENCH='Memory|Redis'
//
// What is exact is what a request allocates; the CPU time of the server's process comes
// next. Requests per second depend on what else runs, and mean something only as a ratio.
package peers
