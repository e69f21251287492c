// Testserver serves the adapter for Echo v5 over any store, for black-box tests in any
// language. The package serve describes its routes; testserver -h lists its flags.
package main

import (
	labecho5 "github.com/reprise-go/reprise/lab/echo5"
	"github.com/reprise-go/reprise/lab/serve"
)

func main() { serve.Main("echo5", labecho5.New) }
