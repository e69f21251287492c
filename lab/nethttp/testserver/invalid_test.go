package main

import (
	"regexp"
	"strings"
	"testing"
)

func TestInvalidFlagEndsTheServerAtOnce(t *testing.T) {
	t.Parallel()
	taken := start(t)
	for name, c := range map[string]struct {
		flags, want string
		code        int
	}{
		"unknown flag":        {"-frobnicate", "-frobnicate", 2},
		"argument":            {"nethttp", `"nethttp"`, 2},
		"adapter":             {"-adapter rails", `"rails" for flag -adapter: want one of`, 2},
		"store":               {"-store etcd", `"etcd" for flag -store: want one of memory,`, 2},
		"preset":              {"-preset exactly-once", "want one of at-most-once, recoverable", 2},
		"key mode":            {"-key-mode lax", "want one of compat, strict", 2},
		"key":                 {"-key cookie", "want header, field:/POINTER, param:NAME or content", 2},
		"key without a place": {"-key field", "want header, field:/POINTER, param:NAME or content", 2},
		"key with a place":    {"-key content:1h", "want header, field:/POINTER, param:NAME or content", 2},
		"key pointer":         {"-key field:id", "Config.Key", 2},
		"key parameter":       {"-key param:", "Config.Key", 2},
		"horizon":             {"-horizon long", "-horizon", 2},
		"short horizon":       {"-horizon 1us", "Config.Horizon", 2},
		"max-run":             {"-max-run long", "-max-run", 2},
		"negative max-run":    {"-max-run -1s", "Config.MaxRun", 2},
		"outer-body":          {"-outer-body xml", "want one of bind, drain, json", 2},
		"inner":               {"-inner exactly-once", "want one of at-most-once, recoverable", 2},
		"oversize":            {"-oversize offload", "want one of summary, unavailable", 2},
		"duration":            {"-lease soon", "-lease", 2},
		"short lease":         {"-lease 10ms", "Config.Lease", 2},
		"short retention":     {"-retention 1us", "Config.Retention", 2},
		"negative wait":       {"-wait -1s", "Config.Wait", 2},
		"negative waiters":    {"-max-waiters -1", "Config.Waiting", 2},
		"negative body":       {"-max-request -1", "Config.Limits.RequestBody", 2},
		"large body":          {"-max-response 999999999", "Config.Limits.ResponseBody", 2},
		"negative records":    {"-max-records -1", "-max-records", 2},
		"negative pool":       {"-pool -1", "-pool", 2},
		"negative purge":      {"-purge -1s", "-purge", 2},
		"negative tx-timeout": {"-tx-timeout -1s", "-tx-timeout", 2},
		"method":              {"-methods GET", "Config.Methods", 2},
		"boolean":             {"-required=perhaps", "-required", 2},
		"contradiction":       {"-fail-open -preset at-most-once", "Config.FailOpen", 2},
		"contrary horizon":    {"-fail-open -horizon 1h", "Config.FailOpen", 2},
		"contrary inner":      {"-fail-open -inner at-most-once", "Config.FailOpen", 2},
		"contrary key":        {"-key content -horizon 1h", "Config.Horizon", 2},
		"contrary max-run":    {"-preset at-most-once -retention 1h -max-run 1h", "Config.Retention", 2},
		"no redis-url":        {"-store redis", "needs -redis-url", 1},
		"no postgres-url":     {"-store postgres", "needs -postgres-url", 1},
		"no postgres-url, tx": {"-store postgres-tx", "needs -postgres-url", 1},
		"bad redis-url":       {"-store redis -redis-url http://user:secret@x", "redis", 1},
		"bad postgres-url":    {"-store postgres -postgres-url http://user:secret@x", "store postgres", 1},
		"no such address":     {"-addr nowhere", "nowhere", 1},
		"address taken":       {"-addr " + taken.addr, "address already in use", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := launch(t, strings.Fields(c.flags)...)
			if code := p.exit(t); code != c.code || !strings.Contains(p.stderr.String(), c.want) || p.stdout.String() != "" {
				t.Errorf("exit code %d, printed %q and %q, want code %d and a message with %q", code, p.stdout, p.stderr, c.code, c.want)
			}
			if strings.Contains(p.stderr.String(), "secret") {
				t.Errorf("%q has the password in it", p.stderr)
			}
		})
	}
}

func TestHelpListsEveryFlag(t *testing.T) {
	t.Parallel()
	p := launch(t, "-h")
	if code := p.exit(t); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
	for name := range strings.FieldsSeq(`adapter store addr redis-url postgres-url pool lease retention preset key-mode required methods
		per-endpoint key horizon max-run outer-body inner wait max-waiters oversize max-request max-response max-records fail-open purge tx-timeout outer`) {
		if !regexp.MustCompile(`(?m)^  -` + name + `[ \n]`).MatchString(p.stderr.String()) {
			t.Errorf("no -%s in the help", name)
		}
	}
}
