// Floors serves what the benchmarks compare the adapter for Gin with: the package floors
// says what that is.
package main

import (
	"github.com/reprise-go/reprise/lab/bench/floors"
	labgin "github.com/reprise-go/reprise/lab/gin"
)

func main() { floors.Main("gin", labgin.NewBare) }
