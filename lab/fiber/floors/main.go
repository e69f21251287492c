// Floors serves the baselines of the adapter for Fiber: see the package floors.
package main

import (
	appfiber "github.com/reprise-go/reprise/adapters/fiber/nativeapp"
	"github.com/reprise-go/reprise/lab/bench/floors"
)

func main() { floors.Main("fiber", appfiber.NewBare) }
