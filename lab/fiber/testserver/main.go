// Testserver serves the adapter for Fiber over any store, for black-box tests in any
// language. The package serve describes its routes; testserver -h lists its flags.
package main

import (
	labfiber "github.com/reprise-go/reprise/lab/fiber"
	"github.com/reprise-go/reprise/lab/serve"
)

func main() { serve.Main("fiber", labfiber.New) }
