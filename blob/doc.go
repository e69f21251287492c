// Package repriseblob keeps response bodies that are too large for a record in a bucket:
// of S3, Google Cloud Storage or Azure, in files, or in memory, or any other bucket with
// a gocloud.dev/blob driver.
//
//	bucket, err := blob.OpenBucket(ctx, "s3://exports?region=eu-central-1")
//	blobs, err := repriseblob.New(bucket, repriseblob.Config{Prefix: "reprise/"})
//	guard, err := protocol.New(store, protocol.Config{Offload: protocol.Offloading{Blobs: blobs}})
//
// A bucket of files is file:///mnt/exports?no_tmp_dir=true&metadata=skip: without the
// first parameter a file is written to the temporary directory and renamed, which fails
// on another volume.
//
// The guard checks each body that it reads: see protocol.Offloading for the client's
// view. A bucket should be private, since anyone who can read it can read responses.
//
// Blobs outlive their records. Call [Store.Sweep] once a day, in one process, or give the
// bucket a lifecycle rule: docs/operate/runbooks.md has both.
//
// The tests here run over the driver in memory. Those on an S3 server, on files and
// behind every adapter, and the measurements, are in lab/blob.
package repriseblob
