package serve

import (
	"bytes"
	"errors"
	"flag"
	"io"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/reprise-go/reprise/conformance/adaptertest"
	reprise "github.com/reprise-go/reprise/core"
	"github.com/reprise-go/reprise/core/protocol"
)

func parse(flags string) (Options, error) {
	return ParseOptions("nethttp", strings.Fields(flags), io.Discard, "gin")
}

// Each flag sets its option, and no other. That an option acts is shown by the suites of
// the adapters, which build the same application, and by lab/matrix.
func TestEachFlagSetsItsOption(t *testing.T) {
	t.Parallel()
	set := map[string]func(*Options){
		"":                              func(*Options) {},
		"-adapter gin":                  func(o *Options) { o.Adapter = "gin" },
		"-store redis":                  func(o *Options) { o.Store = "redis" },
		"-addr 127.0.0.1:1":             func(o *Options) { o.Addr = "127.0.0.1:1" },
		"-redis-url u":                  func(o *Options) { o.Backend.RedisURL = "u" },
		"-postgres-url u":               func(o *Options) { o.Backend.PostgresURL = "u" },
		"-mysql-url u":                  func(o *Options) { o.Backend.MySQLURL = "u" },
		"-sqlite-file f":                func(o *Options) { o.Backend.SQLiteFile = "f" },
		"-etcd-url u":                   func(o *Options) { o.Backend.EtcdURL = "u" },
		"-pool 2":                       func(o *Options) { o.Backend.Pool = 2 },
		"-no-combining":                 func(o *Options) { o.Backend.NoCombining = true },
		"-acked 2":                      func(o *Options) { o.Backend.Acked = 2 },
		"-max-records 2":                func(o *Options) { o.Backend.MaxRecords = 2 },
		"-max-bytes 2":                  func(o *Options) { o.Backend.MaxBytes = 2 },
		"-tx-timeout 1m":                func(o *Options) { o.Backend.TxTimeout = time.Minute },
		"-purge 1m":                     func(o *Options) { o.Purge = time.Minute },
		"-lease 1m":                     func(o *Options) { o.Engine.Lease = time.Minute },
		"-retention 1h":                 func(o *Options) { o.Engine.Retention = time.Hour },
		"-max-run 1m":                   func(o *Options) { o.Engine.MaxRun = time.Minute },
		"-max-waiters 2":                func(o *Options) { o.Engine.Waiting = reprise.WaitLimits{Total: 2, PerKey: 2, PerScope: 2} },
		"-store-timeout 5s":             func(o *Options) { o.Engine.ClaimTimeout, o.Engine.CompleteTimeout = 5*time.Second, 5*time.Second },
		"-preset at-most-once":          func(o *Options) { o.Guard.Preset = reprise.AtMostOnce },
		"-preset recoverable":           func(o *Options) { o.Guard.Preset = reprise.Recoverable },
		"-key field:/id":                func(o *Options) { o.Guard.Key = protocol.KeyField("/id") },
		"-key param:id":                 func(o *Options) { o.Guard.Key = protocol.KeyParam("id") },
		"-key content":                  func(o *Options) { o.Guard.Key = protocol.KeyContent(24 * time.Hour) },
		"-key content -retention 1h":    func(o *Options) { o.Guard.Key, o.Engine.Retention = protocol.KeyContent(time.Hour), time.Hour },
		"-key content -key param:id":    func(o *Options) { o.Guard.Key = protocol.KeyParam("id") },
		"-key param:id -key header":     func(*Options) {},
		"-key-mode strict":              func(o *Options) { o.Guard.KeyMode = protocol.Strict },
		"-key-mode compat":              func(o *Options) { o.Guard.KeyMode = protocol.Compat },
		"-oversize unavailable":         func(o *Options) { o.Guard.Oversize = protocol.Unavailable },
		"-oversize summary":             func(o *Options) { o.Guard.Oversize = protocol.Summary },
		"-required":                     func(o *Options) { o.Guard.Required = true },
		"-methods PUT,DELETE":           func(o *Options) { o.Guard.Methods = []string{"PUT", "DELETE"} },
		"-horizon 48h":                  func(o *Options) { o.Guard.Horizon = 48 * time.Hour },
		"-wait 1s":                      func(o *Options) { o.Guard.Wait = time.Second },
		"-max-request 4":                func(o *Options) { o.Guard.Limits.RequestBody = 4 },
		"-max-response 4":               func(o *Options) { o.Guard.Limits.ResponseBody = 4 },
		"-fail-open":                    func(o *Options) { o.Guard.FailOpen = true },
		"-per-endpoint":                 func(o *Options) { o.PerEndpoint = true },
		"-outer":                        func(o *Options) { o.Outer = true },
		"-outer-body drain":             func(o *Options) { o.OuterBody = adaptertest.Drains },
		"-outer-body bind":              func(o *Options) { o.OuterBody = adaptertest.Binds },
		"-outer-body json":              func(o *Options) { o.OuterBody = adaptertest.Decodes },
		"-inner at-most-once":           func(o *Options) { o.Inner = inside(reprise.AtMostOnce) },
		"-inner recoverable -fail-open": func(o *Options) { o.Inner, o.Guard.FailOpen = inside(reprise.Recoverable), true },
	}
	for flags, change := range set {
		want := Options{Adapter: "nethttp", Store: "memory", Addr: "127.0.0.1:0"}
		change(&want)
		got, err := parse(flags)
		if (got.Inner == nil) != (want.Inner == nil) {
			t.Errorf("%s: there is an inner guard: %t", flags, got.Inner != nil)
		}
		got.Inner, want.Inner = nil, nil                               // functions cannot be compared
		if same := reflect.DeepEqual(got, want); err != nil || !same { //nolint:govet // an error in a config is compared as a pointer
			t.Errorf("%s: %+v, %v, want %+v", flags, got, err, want)
		}
	}
	var help bytes.Buffer
	if _, err := ParseOptions("nethttp", []string{"-h"}, &help); !errors.Is(err, flag.ErrHelp) {
		t.Error(err)
	}
	for _, m := range regexp.MustCompile(`(?m)^  -([a-z-]+)`).FindAllStringSubmatch(help.String(), -1) {
		tried := false
		for flags := range set {
			tried = tried || strings.HasPrefix(flags+" ", "-"+m[1]+" ")
		}
		if !tried {
			t.Errorf("no row for -%s", m[1])
		}
	}
}

func TestInvalidFlagsAreRefused(t *testing.T) {
	t.Parallel()
	for flags, want := range map[string]string{
		"-frobnicate":                         "-frobnicate",
		"nethttp":                             `"nethttp"`,
		"-adapter rails":                      `"rails" for flag -adapter: want one of`,
		"-store etcd":                         `"etcd" for flag -store: want one of memory,`,
		"-preset exactly-once":                "want one of at-most-once, recoverable",
		"-key-mode lax":                       "want one of compat, strict",
		"-key cookie":                         "want header, field:/POINTER, param:NAME or content",
		"-key field":                          "want header, field:/POINTER, param:NAME or content",
		"-key content:1h":                     "want header, field:/POINTER, param:NAME or content",
		"-outer-body xml":                     "want one of bind, drain, json",
		"-inner exactly-once":                 "want one of at-most-once, recoverable",
		"-oversize offload":                   "want one of summary, unavailable",
		"-lease soon":                         "-lease",
		"-required=perhaps":                   "-required",
		"-max-records -1":                     "-max-records",
		"-max-bytes -1":                       "-max-bytes",
		"-pool -1":                            "-pool",
		"-acked -1":                           "-acked",
		"-purge -1s":                          "-purge",
		"-tx-timeout -1s":                     "-tx-timeout",
		"-lease 10ms":                         "Config.Lease", // which the engine refuses
		"-methods GET":                        "Config.Methods",
		"-fail-open -inner at-most-once":      "Config.FailOpen",
		"-fail-open -store postgres-tx":       "-fail-open cannot be combined",
		"-key content -horizon 1h":            "Config.Horizon",
		"-preset at-most-once -max-run 1000h": "Config.",
	} {
		if _, err := parse(flags); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", flags, err, want)
		}
	}
}
