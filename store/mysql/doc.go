// Package reprisemysql keeps idempotency records in MariaDB 10.6 or newer, and in MySQL
// 8.0 or newer.
package reprisemysql
