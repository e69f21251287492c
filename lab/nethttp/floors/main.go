// Floors serves what the benchmarks compare the adapter for net/http with: the package
// floors says what that is.
package main

import (
	"github.com/reprise-go/reprise/lab/bench/floors"
	labhttp "github.com/reprise-go/reprise/lab/nethttp"
)

func main() { floors.Main("nethttp", labhttp.NewBare) }
