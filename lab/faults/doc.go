// Package faults runs real servers behind retrying clients and breaks everything around
// them: processes are killed and stopped at named points, links between clients, servers
// and stores lose, cut, hold and slow down what passes, and the stores' own servers
// crash, fail over and refuse. A checker compares what clients saw, what handlers did and
// what the servers believed with the guarantees of docs/semantics.md.
//
// A seed fixes the faults, in their order; the machine decides what they meet. The
// program under test is lab/testserver, built with the tag reprise_faults, which adds the
// points and a history and is in no other build.
package faults
