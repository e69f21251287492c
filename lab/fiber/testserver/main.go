// Testserver serves the adapter for Fiber over any store, for black-box tests in any
// language. The package serve describes its routes; testserver -h lists its flags.
package main

import (
	appfiber "github.com/reprise-go/reprise/adapters/fiber/nativeapp"
	"github.com/reprise-go/reprise/lab/serve"
)

func main() { serve.Main("fiber", appfiber.New) }
