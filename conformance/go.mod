module github.com/reprise-go/reprise/conformance

go 1.25.0
