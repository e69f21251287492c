//go:build !linux

package reprisesqlite

// networkFilesystem returns an empty text: it knows file systems on Linux only.
func networkFilesystem(string) string { return "" }
