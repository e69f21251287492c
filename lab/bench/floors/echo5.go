//go:build !without_echo5

package main

import "github.com/reprise-go/reprise/lab/serve/serveecho5"

func init() { bare["echo5"] = serveecho5.NewBare }
