//go:build !without_fiber

package main

import "github.com/reprise-go/reprise/lab/serve/servefiber"

func init() { bare["fiber"] = servefiber.NewBare }
