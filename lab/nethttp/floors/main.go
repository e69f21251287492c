// Floors serves the baselines of the adapter for net/http: see the package floors.
package main

import (
	"github.com/reprise-go/reprise/lab/bench/floors"
	labhttp "github.com/reprise-go/reprise/lab/nethttp"
)

func main() { floors.Main("nethttp", labhttp.NewBare) }
