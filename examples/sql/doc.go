// Package programs is one service, written with each of the libraries that Go services
// use to talk to PostgreSQL: it moves money, and every transfer commits together with the
// response that its retries get.
//
// Each folder is a whole program. What differs from library to library is how its handler
// puts the library on the transaction that the middleware opened; everything else is in
// internal/bank. The tests of this folder kill each program again and again, and then
// read the ledger; and they have snippets for sqlx, bun and ent.
package programs
