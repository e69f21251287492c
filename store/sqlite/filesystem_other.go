//go:build !linux

package reprisesqlite

// filesystem knows file systems on Linux only.
func filesystem(string) (network string, used uint64) { return "", 0 }
