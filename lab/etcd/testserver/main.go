// Testserver serves each adapter over any store, etcd and etcd+redis among them, for
// black-box tests in any language. The package serve describes its routes; testserver -h
// lists its flags.
//
// It is a separate module, so that a refused framework takes down only the rows of etcd
// in the matrix, which its tests run. Both releases of Fiber are on the fasthttp of
// the newer one here.
package main

import (
	"github.com/reprise-go/reprise/conformance/adaptertest/testapp"
	labecho "github.com/reprise-go/reprise/lab/echo"
	labecho5 "github.com/reprise-go/reprise/lab/echo5"
	"github.com/reprise-go/reprise/lab/etcd"
	labfiber "github.com/reprise-go/reprise/lab/fiber"
	labfiber3 "github.com/reprise-go/reprise/lab/fiber3"
	labgin "github.com/reprise-go/reprise/lab/gin"
	labhttp "github.com/reprise-go/reprise/lab/nethttp"
	"github.com/reprise-go/reprise/lab/serve"
)

var adapters = map[string]func(*testapp.App) testapp.Server{
	"nethttp": labhttp.New, "gin": labgin.New, "echo": labecho.New, "echo5": labecho5.New, "fiber": labfiber.New, "fiber3": labfiber3.New,
}

func main() {
	etcd.Register()
	serve.MainOf("nethttp", adapters)
}
