// Package blob tests bodies in a bucket: on an S3 server and in files, behind real
// servers, with a bucket that is cut, slow, refusing, emptied and altered, and measures
// their memory. It is a separate module, because the clouds' clients are large.
package blob
