// Package repriselocal answers hot replays from the memory of the process.
package repriselocal
