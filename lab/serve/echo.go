//go:build !without_echo

package serve

import "github.com/reprise-go/reprise/lab/serve/serveecho"

func init() { adapters["echo"] = serveecho.New }
