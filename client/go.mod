module github.com/reprise-go/reprise/client

go 1.25.0
