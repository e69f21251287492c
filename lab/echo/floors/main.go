// Floors serves the baselines of the adapter for Echo: see the package floors.
package main

import (
	appecho "github.com/reprise-go/reprise/adapters/echo/nativeapp"
	"github.com/reprise-go/reprise/lab/bench/floors"
)

func main() { floors.Main("echo", appecho.NewBare) }
