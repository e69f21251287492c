// Package serve is the server under test: every adapter over every store, with the
// application of the package testapp behind it. The command testserver runs it as a
// process for black-box tests in any language; [Adapter] serves it inside a test.
//
// # How to add an adapter
//
// Write a package like servegin: a [testapp.Call] in the framework's own terms, and a New
// that makes a native server of a [testapp.App]. Register it in a file of this package
// that the build tag without_<framework> leaves out.
//
// # How to add a store
//
// Write an opener like that of redis.go, and add its line to the table in stores.go.
package serve
