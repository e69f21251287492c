// Package commands tests every command that a reader can copy: the shell blocks of the
// Markdown pages, and those of package comments, as a fresh clone of the committed tree
// has them. It runs each on a machine with Go, git, make, a C compiler and curl, and then
// with private servers beside them; and it compiles the Go blocks of the pages.
//
// A shell block runs as it stands, in the root of the clone. One that begins with go get
// runs in a new module, as docs/guides/checkout.md sets it up, and one that begins with
// git clone in an empty folder. An HTML comment on the line above the fence lists the
// other requirements of a block, in clauses separated by "; ". In a package comment that
// is a line such as //run:needs redis.
//
//	background until "TEXT"   the first command serves: wait until it prints this
//	background until 8080     the same, until it listens on the port of the examples
//	needs redis               or postgres, or mariadb: without it the block fails, and says
//	                          which server it needs and how to get it, in a line
//	prints "TEXT"             the output has this
//	continues                 run after the block above, in its folder
//	long                      skipped under -short
//	not run: REASON           one of the few that the test lists
//
// A second "background until" is for the second command. Calls of make are left out: most
// take minutes. The test lists them and looks for their targets.
package commands
