// Floors serves the baselines of the adapter for Gin: see the package floors.
package main

import (
	"github.com/reprise-go/reprise/lab/bench/floors"
	labgin "github.com/reprise-go/reprise/lab/gin"
)

func main() { floors.Main("gin", labgin.NewBare) }
