//go:build !without_echo5

package serve

import "github.com/reprise-go/reprise/lab/serve/serveecho5"

func init() { adapters["echo5"] = serveecho5.New }
