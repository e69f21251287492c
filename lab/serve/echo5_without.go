//go:build without_echo5

package serve

func init() { leftOut["echo5"] = "without_echo5" }
