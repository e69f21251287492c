// Package serve is the server under test: an adapter over any store, with the application
// of the package testapp behind it. It knows no framework. The module of each framework,
// such as lab/gin, has the native server, and a command testserver whose main function is
// [Main], for black-box tests in any language.
//
// # How to add a store
//
// Write an opener like that of redis.go, and add its line to the table in stores.go.
package serve
