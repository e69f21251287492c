// Package blob shows what happens to bodies that are kept in a bucket: on an S3 server
// and in files, behind real servers, with a bucket that is cut, slow, refusing, emptied
// and altered, and how much memory it takes. It is a module of its own, because the
// clouds' clients are large.
package blob
