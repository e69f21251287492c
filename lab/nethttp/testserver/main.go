// Testserver serves the adapter for net/http over any store, for black-box tests in any
// language. The package serve describes its routes; testserver -h lists its flags.
package main

import (
	labhttp "github.com/reprise-go/reprise/lab/nethttp"
	"github.com/reprise-go/reprise/lab/serve"
)

func main() { serve.Main("nethttp", labhttp.New) }
