// Testserver serves the adapter for net/http over any store, etcd and etcd+redis among
// them, for black-box tests in any language. The package serve describes its routes;
// testserver -h lists its flags.
package main

import (
	"github.com/reprise-go/reprise/lab/etcd"
	labhttp "github.com/reprise-go/reprise/lab/nethttp"
	"github.com/reprise-go/reprise/lab/serve"
)

func main() {
	etcd.Register()
	serve.Main("nethttp", labhttp.New)
}
