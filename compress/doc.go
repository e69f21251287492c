// Package reprisecompress compresses what a record keeps.
package reprisecompress
