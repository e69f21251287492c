module github.com/reprise-go/reprise/examples

go 1.26.0
