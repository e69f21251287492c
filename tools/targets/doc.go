// Package targets holds the tests of the Makefile and of the scripts in .ci: that each
// check fails when it should.
package targets
