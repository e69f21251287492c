//go:build !without_fiber

package serve

import "github.com/reprise-go/reprise/lab/serve/servefiber"

func init() { adapters["fiber"] = servefiber.New }
