// Floors serves the baselines of the adapter for Fiber v3: see the package floors.
package main

import (
	appfiber3 "github.com/reprise-go/reprise/adapters/fiber3/nativeapp"
	"github.com/reprise-go/reprise/lab/bench/floors"
)

func main() { floors.Main("fiber3", appfiber3.NewBare) }
