// Floors serves the baselines of the adapter for Fiber: see the package floors.
package main

import (
	"github.com/reprise-go/reprise/lab/bench/floors"
	labfiber "github.com/reprise-go/reprise/lab/fiber"
)

func main() { floors.Main("fiber", labfiber.NewBare) }
