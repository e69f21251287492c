// Floors serves what the benchmarks compare the adapter for Echo v5 with: the package
// floors says what that is.
package main

import (
	"github.com/reprise-go/reprise/lab/bench/floors"
	labecho5 "github.com/reprise-go/reprise/lab/echo5"
)

func main() { floors.Main("echo5", labecho5.NewBare) }
