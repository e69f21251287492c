// Floors serves what the benchmarks compare the adapter for Fiber with: the package
// floors says what that is.
package main

import (
	"github.com/reprise-go/reprise/lab/bench/floors"
	labfiber "github.com/reprise-go/reprise/lab/fiber"
)

func main() { floors.Main("fiber", labfiber.NewBare) }
