//go:build !without_gin

package serve

import "github.com/reprise-go/reprise/lab/serve/servegin"

func init() { adapters["gin"] = servegin.New }
