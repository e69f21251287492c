//go:build without_fiber

package serve

func init() { leftOut["fiber"] = "without_fiber" }
