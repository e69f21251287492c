// Testserver serves the adapter for Echo over any store, for black-box tests in any
// language. The package serve describes its routes; testserver -h lists its flags.
package main

import (
	appecho "github.com/reprise-go/reprise/adapters/echo/nativeapp"
	"github.com/reprise-go/reprise/lab/serve"
)

func main() { serve.Main("echo", appecho.New) }
