package blob_test

import (
	"context"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
	"gocloud.dev/blob"
	"gocloud.dev/blob/s3blob"
)

const bucketName = "answers"

// openS3 opens the bucket of an S3 server.
func openS3(ctx context.Context, endpoint string) (*blob.Bucket, error) {
	client := s3.NewFromConfig(aws.Config{
		Region: "eu-central-1", BaseEndpoint: aws.String(endpoint),
		Credentials: credentials.NewStaticCredentialsProvider("key", "secret", ""),
	}, func(o *s3.Options) { o.UsePathStyle = true })
	return s3blob.OpenBucket(ctx, client, bucketName, nil)
}

// s3Server is an S3 server that fails as a test wants it to.
type s3Server struct {
	*httptest.Server

	mu    sync.Mutex
	fault http.HandlerFunc // in place of the server; it may call real
	real  http.Handler
}

func startS3(t *testing.T) *s3Server {
	t.Helper()
	backend := s3mem.New()
	must(t, backend.CreateBucket(bucketName))
	s := &s3Server{real: gofakes3.New(backend, gofakes3.WithLogger(gofakes3.DiscardLog())).Server()}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		fault := s.fault
		s.mu.Unlock()
		if fault == nil {
			s.real.ServeHTTP(w, r)
			return
		}
		fault(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

// fail makes the server do f instead, until it is nil.
func (s *s3Server) fail(f http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = f
}

// refuse answers as a bucket does whose policy was changed.
func refuse(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(http.StatusForbidden)
	_, _ = io.WriteString(w, `<?xml version="1.0"?><Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>`)
}

// hang sends no response until the client gives up.
func hang(_ http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	<-r.Context().Done()
}

// cut lets the first half of an object through, and closes the connection.
func (s *s3Server) cut(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet {
		_, _ = io.CopyN(io.Discard, r.Body, 1000)
		panic(http.ErrAbortHandler)
	}
	whole := httptest.NewRecorder()
	s.real.ServeHTTP(whole, r)
	maps.Copy(w.Header(), whole.Header())
	w.WriteHeader(whole.Code)
	_, _ = w.Write(whole.Body.Bytes()[:whole.Body.Len()/2])
	_ = http.NewResponseController(w).Flush()
	panic(http.ErrAbortHandler)
}
