// Testserver serves the adapter for Fiber v3 over any store, for black-box tests in any
// language. The package serve describes its routes; testserver -h lists its flags.
package main

import (
	appfiber3 "github.com/reprise-go/reprise/adapters/fiber3/nativeapp"
	"github.com/reprise-go/reprise/lab/serve"
)

func main() { serve.Main("fiber3", appfiber3.New) }
