// Package commands tests every command that a reader can copy: the shell blocks of the
// Markdown pages and of package comments, as a fresh clone of the committed tree has
// them, on a machine with Go, git, make, a C compiler, curl and private servers. It also
// compiles the Go blocks of the pages.
//
// A shell block runs as it stands, in the root of the clone. One that begins with go get
// runs in a new module, as docs/guides/checkout.md sets it up, and one that names nothing
// of the clone in an empty folder. An HTML comment on the line above the fence, or in a
// package comment a line such as //run:needs redis, has clauses separated by "; ":
//
//	background until "TEXT"   the first command serves: wait until it prints this
//	background until 8080     the same, until it listens on the port of the examples
//	needs redis               or postgres, mariadb, node: skipped where it is not installed
//	prints "TEXT"             the output has this
//	continues                 run after the block above, in its folder
//	not run: REASON
//
// A second "background until" is for the second command. Calls of make only have to name
// a target.
package commands
