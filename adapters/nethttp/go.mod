module github.com/reprise-go/reprise/adapters/nethttp

go 1.25.0
