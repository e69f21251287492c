//go:build !without_gin

package main

import "github.com/reprise-go/reprise/lab/serve/servegin"

func init() { bare["gin"] = servegin.NewBare }
