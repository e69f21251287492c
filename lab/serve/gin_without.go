//go:build without_gin

package serve

func init() { leftOut["gin"] = "without_gin" }
