// Testserver serves each adapter over any store, etcd among them, for black-box tests in
// any language. The package serve describes its routes; testserver -h lists its flags.
//
// It is a separate module, so that a refused framework takes down only the row of etcd
// in the matrix, which its tests run. Both releases of Fiber are on the fasthttp of
// the newer one here.
package main

import (
	appecho "github.com/reprise-go/reprise/adapters/echo/nativeapp"
	appecho5 "github.com/reprise-go/reprise/adapters/echo5/nativeapp"
	appfiber "github.com/reprise-go/reprise/adapters/fiber/nativeapp"
	appfiber3 "github.com/reprise-go/reprise/adapters/fiber3/nativeapp"
	appgin "github.com/reprise-go/reprise/adapters/gin/nativeapp"
	apphttp "github.com/reprise-go/reprise/adapters/nethttp/nativeapp"
	"github.com/reprise-go/reprise/conformance/adaptertest/testapp"
	"github.com/reprise-go/reprise/lab/etcd"
	"github.com/reprise-go/reprise/lab/serve"
)

var adapters = map[string]func(*testapp.App) testapp.Server{
	"nethttp": apphttp.New, "gin": appgin.New, "echo": appecho.New, "echo5": appecho5.New, "fiber": appfiber.New, "fiber3": appfiber3.New,
}

func main() {
	etcd.Register()
	serve.MainOf("nethttp", adapters)
}
