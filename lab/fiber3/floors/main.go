// Floors serves the baselines of the adapter for Fiber v3: see the package floors.
package main

import (
	"github.com/reprise-go/reprise/lab/bench/floors"
	labfiber3 "github.com/reprise-go/reprise/lab/fiber3"
)

func main() { floors.Main("fiber3", labfiber3.NewBare) }
