// Package programs is one service, written with each of the libraries that Go services
// use to talk to PostgreSQL: it moves money, and every transfer commits together with the
// response that its retries get.
//
// Each folder is a whole program. What differs from library to library is how its handler
// puts the library on the transaction that the middleware opened; everything else is in
// internal/bank. The test of this folder kills each program again and again, and then
// reads the ledger.
package programs
