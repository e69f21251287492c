// Floors serves the baselines of the adapter for net/http: see the package floors.
package main

import (
	apphttp "github.com/reprise-go/reprise/adapters/nethttp/nativeapp"
	"github.com/reprise-go/reprise/lab/bench/floors"
)

func main() { floors.Main("nethttp", apphttp.NewBare) }
