//go:build race

package harness

func init() { races = true }
