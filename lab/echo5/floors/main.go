// Floors serves the baselines of the adapter for Echo v5: see the package floors.
package main

import (
	"github.com/reprise-go/reprise/lab/bench/floors"
	labecho5 "github.com/reprise-go/reprise/lab/echo5"
)

func main() { floors.Main("echo5", labecho5.NewBare) }
