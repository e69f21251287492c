//go:build !linux

package reprisesqlite

// networkFilesystem is empty: only Linux is asked.
func networkFilesystem(string) string { return "" }
