// Testserver serves the adapter for Gin over any store, for black-box tests in any
// language. The package serve describes its routes; testserver -h lists its flags.
package main

import (
	appgin "github.com/reprise-go/reprise/adapters/gin/nativeapp"
	"github.com/reprise-go/reprise/lab/serve"
)

func main() { serve.Main("gin", appgin.New) }
