//go:build !without_echo

package main

import "github.com/reprise-go/reprise/lab/serve/serveecho"

func init() { bare["echo"] = serveecho.NewBare }
