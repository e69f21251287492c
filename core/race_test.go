//go:build race

package reprise_test

func init() { raceAllocations = 1 }
