// Package record has the scripts that read and write a record in Redis, and the binary
// layout of the record and of the arguments and answers of the scripts.
package record
