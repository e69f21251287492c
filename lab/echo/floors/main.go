// Floors serves the baselines of the adapter for Echo: see the package floors.
package main

import (
	"github.com/reprise-go/reprise/lab/bench/floors"
	labecho "github.com/reprise-go/reprise/lab/echo"
)

func main() { floors.Main("echo", labecho.NewBare) }
