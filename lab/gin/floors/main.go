// Floors serves the baselines of the adapter for Gin: see the package floors.
package main

import (
	appgin "github.com/reprise-go/reprise/adapters/gin/nativeapp"
	"github.com/reprise-go/reprise/lab/bench/floors"
)

func main() { floors.Main("gin", appgin.NewBare) }
