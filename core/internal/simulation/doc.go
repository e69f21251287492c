// Package simulation proves the engine in universes: processes over a memory store that
// pause and crash, a network that loses requests and replies or delivers them late, and
// clients that retry until they have their answer. A seed fixes the faults, the clients
// and the jitter of the engines. A violation prints the seed and the history of its key.
package simulation
