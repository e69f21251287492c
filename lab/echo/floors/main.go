// Floors serves what the benchmarks compare the adapter for Echo with: the package floors
// says what that is.
package main

import (
	"github.com/reprise-go/reprise/lab/bench/floors"
	labecho "github.com/reprise-go/reprise/lab/echo"
)

func main() { floors.Main("echo", labecho.NewBare) }
