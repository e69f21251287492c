// Package reprisecompress compresses what a guard seals, with zstd:
//
//	guard, err := protocol.New(engine, protocol.Config{Seal: protocol.Sealing{
//		On: true, Secret: secret, Compressor: reprisecompress.New(),
//	}})
//
// Responses of a few KiB of JSON usually take a third to a fifth of their room. What is
// smaller than Sealing.CompressFrom, or is compressed already by its Content-Encoding or
// media type, is left as it is.
//
// A compressed record says by its size how much of the response repeats. Do not compress
// responses in which a secret stands beside text that an attacker chooses, if the
// attacker can see the sizes of records: docs/sealing.md says more.
package reprisecompress
