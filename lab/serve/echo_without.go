//go:build without_echo

package serve

func init() { leftOut["echo"] = "without_echo" }
