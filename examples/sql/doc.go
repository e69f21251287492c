// Package programs is one service, written with each of the libraries that Go services
// use to talk to PostgreSQL: it moves money, and every transfer commits together with the
// response that its retries get.
//
// Each folder is a whole program. They differ in how the handler puts its library on the
// transaction that the middleware opened; the common parts are in internal/bank. The
// tests of this folder kill each program again and again, and then read the ledger; and
// they have snippets for sqlx, bun and ent.
package programs
