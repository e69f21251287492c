// Testserver serves the adapter for net/http over any store, for black-box tests in any
// language. The package serve describes its routes; testserver -h lists its flags.
package main

import (
	apphttp "github.com/reprise-go/reprise/adapters/nethttp/nativeapp"
	"github.com/reprise-go/reprise/lab/serve"
)

func main() { serve.Main("nethttp", apphttp.New) }
