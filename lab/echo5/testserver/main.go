// Testserver serves the adapter for Echo v5 over any store, for black-box tests in any
// language. The package serve describes its routes; testserver -h lists its flags.
package main

import (
	appecho5 "github.com/reprise-go/reprise/adapters/echo5/nativeapp"
	"github.com/reprise-go/reprise/lab/serve"
)

func main() { serve.Main("echo5", appecho5.New) }
