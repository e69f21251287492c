// Package repriseblob keeps response bodies that are too large for a record in a bucket.
package repriseblob
