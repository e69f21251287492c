// Floors serves the baselines of the adapter for Echo v5: see the package floors.
package main

import (
	appecho5 "github.com/reprise-go/reprise/adapters/echo5/nativeapp"
	"github.com/reprise-go/reprise/lab/bench/floors"
)

func main() { floors.Main("echo5", appecho5.NewBare) }
