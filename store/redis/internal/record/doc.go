// Package record has the bytes of a record in Redis, of the arguments and answers of the
// scripts that read and write it, and these scripts.
package record
